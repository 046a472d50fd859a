package ops

import (
	"context"
	"errors"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/sr"

	"blobfeed/bridge"
	"blobfeed/internal/crash"
	"blobfeed/internal/history"
	"blobfeed/offsets"
	"blobfeed/source"
)

// classes are the values of the label class. The set is closed, so that errors can't make series without end.
var classes = []string{"fenced", "damage", "gap", "event", "kafka", "registry", "network", "feed", "panic", "other"}

// class returns the class of an error.
func class(err error) string {
	var (
		damage *source.DamageError
		gap    *history.GapError
		event  *bridge.EventError
		broker *kerr.Error
		answer *sr.ResponseError // of the schema registry; without an answer, the class is network
		netErr net.Error
		caught *crash.Panic
	)
	switch {
	case errors.As(err, &caught):
		return "panic"
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
	case errors.Is(err, source.ErrNoFeed), errors.Is(err, source.ErrNotFound):
		return "feed"
	}
	return "other"
}
