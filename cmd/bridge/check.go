package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"blobfeed/internal/check"
	"blobfeed/internal/config"
	"blobfeed/internal/plain"
	"blobfeed/internal/setup"
)

func checkVerb(ctx context.Context, args []string, stdout, _ io.Writer) error {
	fs := flags("check", "[--output text|json]", stdout, func(w io.Writer) {
		fmt.Fprint(w, "\nTries what run needs of the feed and of Kafka, writes nothing, and says what to do. "+
			"Exit code 1 if run would not work.\n")
	})
	asJSON, err := parseOutput(fs, args, "one document per line")
	if err != nil {
		return err
	}
	c, err := load(config.Load(false))
	if err != nil {
		return err
	}
	b, err := surroundings(c)
	if err != nil {
		return &usageError{err}
	}
	found, err := check.Run(ctx, b, time.Now())
	if err != nil {
		return &usageError{err}
	}
	show := found.Text
	if asJSON {
		show = found.JSON
	}
	if err := show(stdout); err != nil {
		return err
	}
	if failed := found.Count(check.Failed); failed > 0 {
		return fmt.Errorf("%d of %s failed", failed, plain.Count(len(found), "check"))
	}
	return nil
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
