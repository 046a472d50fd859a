package main

import (
	"context"
	"strings"
	"time"

	"blobfeed/internal/check"
	"blobfeed/internal/config"
	"blobfeed/internal/setup"
)

// findings checks a bridge. An error is one of the settings.
func findings(ctx context.Context, c *config.Config) (check.Findings, error) {
	b, err := surroundings(c)
	if err != nil {
		return nil, err
	}
	return check.Run(ctx, b, time.Now())
}

// surroundings returns the bridge of the settings, for checks.
func surroundings(c *config.Config) (*check.Bridge, error) {
	o, err := setup.Options(c, setup.Observe{})
	if err != nil {
		return nil, err
	}
	client, err := setup.Kafka(c, c.Name+"-check", 1)
	if err != nil {
		return nil, err
	}
	record, problems := setup.Record(c)
	if len(problems) > 0 {
		return nil, problems[0]
	}
	b := &check.Bridge{
		Options: &o, Record: record, Kafka: &client, Insecure: c.Insecure(), LongestTopic: setup.LongestTopic(c),
	}
	if !strings.HasPrefix(c.SourceURL, "file://") {
		azure := setup.Azure(c)
		b.Azure = &azure
	}
	b.Registry, err = setup.Registry(c, setup.Observe{})
	return b, err
}
