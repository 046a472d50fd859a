//go:build integration

package integration

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// An instance is stopped where it is, in the middle of a transaction, for longer than its session; another one takes
// over; the first one wakes up and goes on. It may not make a record visible that the other has delivered (I2, I3).
func TestZombie(t *testing.T) {
	t.Parallel()
	settings, topic, notes := crashRun(t, shared.KafkaBrokers, -1)
	settings = append(settings, "COMMIT_INTERVAL=1s", "DEBUG=txn_records=20000") // mostly in a transaction
	c := consume(t, shared.KafkaBrokers, topic, notes...)
	running := start(t, []string{"run"}, settings...)
	for i := range 4 {
		before := c.data
		c.until(t, time.Minute, fmt.Sprintf("progress before pause %d", i+1), func() bool { return c.data > before })
		running.signal(syscall.SIGSTOP)
		next := start(t, []string{"run"}, settings...)
		before = c.data
		c.until(t, time.Minute, "progress of the one that took over", func() bool { return c.data > before })
		running.signal(syscall.SIGCONT)
		before = c.data
		c.until(t, time.Minute, "progress of both", func() bool { return c.data > before })
		running.signal(syscall.SIGKILL)
		<-running.done
		running = next
	}
	running.signal(syscall.SIGTERM)
	if code := running.wait(t, 15*time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
	finish(t, c, settings)
}
