package main

import (
	"blobfeed/internal/config"
	"blobfeed/internal/kafka"
	"blobfeed/internal/ops"
	"blobfeed/internal/plain"
	"blobfeed/internal/progress"
	"blobfeed/internal/setup"
)

// advisedLog adds to the errors in the log what check says about them.
type advisedLog struct {
	*progress.Progress
	client *kafka.Client
}

// Failed implements bridge.FailureObserver.
func (a advisedLog) Failed(lease int32, err error) {
	a.Progress.Failed(lease, plain.WithRemedy(err, a.client.Advice(err)))
}

// advisedMonitor does so for the status page and the metrics.
type advisedMonitor struct {
	*ops.Monitor
	client *kafka.Client
}

// Failed implements bridge.FailureObserver.
func (a advisedMonitor) Failed(lease int32, err error) {
	a.Monitor.Failed(lease, plain.WithRemedy(err, a.client.Advice(err)))
}

// advise does so for the error that a verb ends with. Of the settings it needs only how the brokers are reached.
func advise(err error) error {
	c, _ := config.LoadKafka() // problems are those of the verb
	client, unusable := setup.Kafka(c, "", 1)
	if unusable != nil {
		return err
	}
	return plain.WithRemedy(err, client.Advice(err))
}
