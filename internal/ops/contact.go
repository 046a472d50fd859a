package ops

import (
	"fmt"
	"net/http"
	"time"

	"blobfeed/internal/plain"
)

// contact is how a service answers: Kafka, or the storage service. It fails long before the work that needs the service
// does, which retries first.
type contact struct {
	answered time.Time // last
	failed   time.Time // last
	since    time.Time // of the first failure after the last answer
	failures int       // in a row
	why      string    // of the last
}

func (c *contact) answer(now time.Time) {
	c.answered, c.failures = now, 0
}

func (c *contact) fail(now time.Time, why string) {
	if c.failures == 0 {
		c.since = now
	}
	c.failures++
	c.failed, c.why = now, why
}

const (
	// silence is how long Kafka may say nothing. The view of the offsets topic asks twice a second.
	silence = 10 * time.Second
	// another is how long another broker may take to answer after one could not be reached.
	another = 2 * time.Second
	// forgotten is how long a failure counts if nothing is tried after it. Attempts are at most 30 s apart.
	forgotten = 2 * time.Minute
)

// kafkaProblem says that no broker answers, or nothing.
func (c *contact) kafkaProblem(now time.Time) string {
	switch {
	case c.failures > 0 && now.Sub(c.failed) < forgotten && (c.answered.IsZero() || now.Sub(c.answered) > another):
		return fmt.Sprintf("Kafka has not answered for %s: %s", plain.Span(now.Sub(c.since)), c.why)
	case !c.answered.IsZero() && now.Sub(c.answered) > silence:
		return fmt.Sprintf("Kafka has not answered for %s", plain.Span(now.Sub(c.answered)))
	}
	return ""
}

// storageProblem says that the storage service refuses or fails. A single failure is usual, and retried.
func (c *contact) storageProblem(now time.Time) string {
	if c.failures < 2 || now.Sub(c.failed) >= forgotten {
		return ""
	}
	return fmt.Sprintf("the storage service %s for %s", c.why, plain.Span(now.Sub(c.since)))
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
	m.kafka.fail(m.now(), plain.Clip(err.Error()))
}
