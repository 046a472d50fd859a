package offsets

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"blobfeed/internal/pause"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Session is this instance's membership of the group, by the clock. Without transactions a lease ends with it:
// brokers would take whatever a paused process sends when it wakes up, while another instance works.
//
// The coordinator counts a session from the last request that it got, so it is counted here from when that
// request was sent. A lapse is a time between two of them that was longer than a session. What was acquired
// before a lapse is void, whatever the coordinator says after it.
type Session struct {
	timeout time.Duration

	mu        sync.Mutex
	confirmed time.Time
	lapses    int
}

// ErrLapsed says that the group did not confirm this instance for a session, so that another one may hold its leases.
var ErrLapsed = errors.New("the group did not confirm this instance for as long as a session lasts")

// NewSession returns a session that nobody has confirmed yet.
func NewSession(timeout time.Duration) *Session { return &Session{timeout: timeout} }

// OnBrokerE2E implements kgo.HookBrokerE2E for the member's client.
func (s *Session) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e2e kgo.BrokerE2E) {
	switch kmsg.Key(key) {
	case kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat:
		if e2e.Err() == nil {
			s.confirm(time.Now().Add(-e2e.DurationE2E()))
		}
	}
}

func (s *Session) confirm(sent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.confirmed.IsZero() || elapsed(s.confirmed, sent) > s.timeout {
		s.lapses++
	}
	if sent.After(s.confirmed) {
		s.confirmed = sent
	}
}

// begin returns a function that says whether what begins now may still write.
func (s *Session) begin() (alive func() error) {
	s.mu.Lock()
	lapses := s.lapses
	s.mu.Unlock()
	return func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.lapses != lapses || s.confirmed.IsZero() || elapsed(s.confirmed, time.Now()) > s.timeout {
			return ErrLapsed
		}
		return nil
	}
}

// elapsed returns the longer of two measures: by the monotonic clock, which stops while a machine sleeps, and by the
// wall clock.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// redial is the pause between two attempts of a client that may not send any more.
const redial = 250 * time.Millisecond

// guard makes every connection of a client ask alive before it sends. A check before produce would not do: a client has
// requests under way when the process is paused, and sends them when it wakes up. It calls lapsed when one
// may not send.
func guard(opts []kgo.Opt, alive func() error, lapsed func(error)) ([]kgo.Opt, error) {
	cl, err := kgo.NewClient(opts...) // it connects to nothing
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	dial := cl.OptValue(kgo.Dialer).(func(context.Context, string, string) (net.Conn, error))
	return append(opts, kgo.Dialer(func(ctx context.Context, network, host string) (net.Conn, error) {
		if err := alive(); err != nil {
			lapsed(err)
			_ = pause.For(ctx, redial) // kgo dials again at once, until its client is closed
			return nil, err
		}
		conn, err := dial(ctx, network, host)
		if err != nil {
			return nil, err
		}
		return &guarded{conn, alive}, nil
	})), nil
}

type guarded struct {
	net.Conn
	alive func() error
}

func (c *guarded) Write(b []byte) (int, error) {
	if err := c.alive(); err != nil {
		inner := c.Conn
		if encrypted, ok := inner.(*tls.Conn); ok {
			inner = encrypted.NetConn()
		}
		if tcp, ok := inner.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // what the kernel has not sent yet is dropped, too
		}
		return 0, errors.Join(err, c.Close())
	}
	return c.Conn.Write(b)
}
