package main

import (
	"blobfeed/bridge"
	"blobfeed/internal/config"
	"blobfeed/internal/kafka"
	"blobfeed/internal/remedy"
	"blobfeed/internal/setup"
)

// advised adds to the errors of a running instance what check says about them, for the log, the page and traces.
type advised struct {
	bridge.Observers
	client *kafka.Client
}

// Failed implements bridge.Observer.
func (a advised) Failed(lease int32, err error) {
	a.Observers.Failed(lease, remedy.With(err, a.client.Advice(err)))
}

// advise does so for the error that a verb ends with. Of the settings it needs only how the brokers are reached.
func advise(err error) error {
	c, _ := config.LoadKafka() // problems are those of the verb
	client, unusable := setup.Kafka(c, "", 1)
	if unusable != nil {
		return err
	}
	return remedy.With(err, client.Advice(err))
}
