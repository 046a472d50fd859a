package ops

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/sr"

	"blobfeed/bridge"
	"blobfeed/internal/crash"
	"blobfeed/internal/history"
	"blobfeed/internal/plain"
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

// contact is how a service answers: Kafka, or the storage service. It fails long before the work that needs the service
// does, which retries first.
type contact struct {
	answered time.Time // last
	failed   time.Time // last
	since    time.Time // of the first failure after the last answer
	failures int       // in a row
	why      string    // of the last
	cause    string    // of the last, of the storage service: the end of an error, without the URL; or empty
}

func (c *contact) answer(now time.Time) {
	c.answered, c.failures = now, 0
}

// fail takes note of a failure that took some time.
func (c *contact) fail(now time.Time, took time.Duration, why string) {
	if c.failures == 0 {
		c.since = now.Add(-took)
	}
	c.failures++
	c.failed, c.why = now, why
}

const (
	// silence is how long Kafka may say nothing. The view of the offsets topic asks twice a second, as long as there is
	// an engine.
	silence = 10 * time.Second
	// another is how long another broker may take to answer after one could not be reached, and how long Kafka may say
	// nothing to an instance that has lost its group: mostly, silence is why.
	another = 2 * time.Second
	// forgotten is how long a failure counts if nothing is tried after it. Attempts are at most 30 s apart.
	forgotten = 2 * time.Minute
)

// kafkaProblem says that no broker answers, or nothing for longer than a limit; 0: nothing may have been asked.
func (c *contact) kafkaProblem(now time.Time, limit time.Duration) string {
	switch {
	case c.failures > 0 && now.Sub(c.failed) < forgotten && (c.answered.IsZero() || now.Sub(c.answered) > another):
		from := c.since
		if c.since.Sub(c.answered) < lasting { // the first request failed some time after the silence began
			from = c.answered
		}
		return fmt.Sprintf("Kafka has not answered for %s: %s", plain.Span(now.Sub(from)), c.why)
	case limit > 0 && !c.answered.IsZero() && now.Sub(c.answered) > limit:
		return fmt.Sprintf("Kafka has not answered for %s", plain.Span(now.Sub(c.answered)))
	}
	return ""
}

// storageProblem says that the storage service refuses or fails. A single failure is usual, and retried.
func (c *contact) storageProblem(now time.Time) string {
	if c.failures < 2 || now.Sub(c.failed) >= forgotten {
		return ""
	}
	text := fmt.Sprintf("the storage service %s for %s", c.why, plain.Span(now.Sub(c.since)))
	if c.cause != "" {
		text += ": " + c.cause
	}
	return text
}

// causeOf returns the end of an error of a connection, "" for other errors. What is before it has long URLs, and ports
// that differ each time.
func causeOf(err error) string {
	if op, is := errors.AsType[*net.OpError](err); is {
		return plain.Clip(op.Err.Error())
	}
	return ""
}

// refusal returns what is wrong with an answer of the storage service, "" if nothing is. That there is no such blob is
// an answer.
func refusal(status int) string {
	switch {
	case status == 0:
		return "has not answered"
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusTooManyRequests,
		status >= http.StatusInternalServerError:
		return fmt.Sprintf("has answered %d %s", status, http.StatusText(status))
	}
	return ""
}

// BrokerAnswered takes note of an answer of a broker.
func (m *Monitor) BrokerAnswered() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kafka.answer(m.now())
}

// BrokerFailed takes note of a failed connection to a broker.
func (m *Monitor) BrokerFailed(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kafka.fail(m.now(), 0, plain.Clip(err.Error()))
}
