package ops

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/sr"

	"blobfeed/bridge"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Failure is an error that is tried again, as often as it came.
type Failure struct {
	Time  time.Time `json:"time"`  // of the last one
	Lease int32     `json:"lease"` // -1: the instance
	Class string    `json:"class"`
	Error string    `json:"error"`
	Count int       `json:"count"`
}

// classes are the values of the label class: a closed set, so that errors can't make series without end.
var classes = []string{"fenced", "damage", "gap", "event", "kafka", "registry", "network", "feed", "other"}

// class says what kind of trouble an error is.
func class(err error) string {
	var (
		damage *source.DamageError
		gap    *bridge.GapError
		event  *bridge.EventError
		broker *kerr.Error
		answer *sr.ResponseError // of the schema registry; where it does not answer, that is the network
		netErr net.Error
	)
	switch {
	case errors.Is(err, offsets.ErrFenced):
		return "fenced"
	case errors.As(err, &damage):
		return "damage"
	case errors.As(err, &gap):
		return "gap"
	case errors.As(err, &event):
		return "event"
	case errors.As(err, &broker):
		return "kafka"
	case errors.As(err, &answer):
		return "registry"
	case errors.As(err, &netErr), errors.Is(err, context.DeadlineExceeded):
		return "network"
	case errors.Is(err, source.ErrNotEnabled), errors.Is(err, source.ErrNotFound):
		return "feed"
	}
	return "other"
}
