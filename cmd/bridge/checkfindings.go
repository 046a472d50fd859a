package main

import (
	"context"
	"net/http"
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

// address adds whether run can serve HTTP. An instance that runs has the address already.
func address(ctx context.Context, found *check.Findings, c *config.Config) {
	l, must, err := listen(c, true)
	if err == nil {
		if l != nil {
			_ = l.Close()
			found.Add("http", check.OK, "run can serve HTTP at "+c.HTTPAddr, "")
		}
		return
	}
	status := check.Warning // run serves no HTTP then
	if must {
		status = check.Failed
	}
	const other = "an instance serves HTTP there; another one on this machine needs another address: "
	if code, _, aerr := askLocal(ctx, c, "/healthz", time.Second); aerr == nil && code == http.StatusOK {
		found.Add("http", check.Warning, err.Error(), other+freeAddress)
		return
	}
	found.Add("http", status, err.Error(), freeAddress)
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
