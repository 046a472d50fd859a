package main

import (
	"blobfeed/internal/config"
	"blobfeed/internal/setup"
)

// adviser adds to the errors of a bridge what a user can do about them, for the log, the state and the page.
type adviser struct{ of *instance }

// Advise implements bridge.Adviser.
func (a adviser) Advise(err error) error { return setup.Advised(a.of.config, &a.of.client, err) }

// advise does so for the error that a verb ends with. Of the settings it needs only how the brokers are reached.
func advise(err error) error {
	c, _ := config.LoadKafka() // problems are those of the verb
	client, unusable := setup.Kafka(c, "", 1)
	if unusable != nil {
		return err
	}
	return setup.Advised(c, &client, err)
}
