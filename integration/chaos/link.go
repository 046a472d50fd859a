package chaos

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Mode is what a Link lets through.
type Mode int

// The modes.
const (
	Open Mode = iota
	// Stalled lets nothing through, and keeps connections. What was sent arrives once the link is open again, as TCP
	// would deliver it: requests of a client that has given up long ago are among it.
	Stalled
	// Deaf lets requests through, and no answers: work is done that its client does not know of. The answers are lost,
	// so their connections end when the mode does.
	Deaf
	// Reset ends connections, and new ones at once.
	Reset
	// NoGroup stalls connections on which requests of a consumer group are made, and no others: an instance that the
	// group takes for dead, and that goes on producing.
	NoGroup
	// Blind is NoGroup for connections with fetches, too: that instance sees nothing of what others write, either.
	Blind
)

func (m Mode) String() string {
	return [...]string{"open", "stalled", "deaf", "reset", "no group", "blind"}[m]
}

// Link stands between an instance and a broker.
type Link struct {
	target   string
	listener net.Listener
	distance atomic.Int64 // nanoseconds by which answers are late
	running  sync.WaitGroup
	closed   context.Context // ends dials
	end      context.CancelFunc

	mu      sync.Mutex
	mode    Mode
	changed chan struct{} // closed and replaced with every change of mode
	pipes   map[*pipe]struct{}
}

// pipe is a connection through the link. Its fields are guarded by the link's mu.
type pipe struct {
	client, broker net.Conn // broker is nil until it is dialled
	carried        kinds    // of requests
	lost           bool     // answers
	gone           chan struct{}
}

// NewLink listens at address and passes connections on to target.
func NewLink(address, target string) (*Link, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for a link to %s: %w", target, err)
	}
	l := &Link{target: target, listener: listener, changed: make(chan struct{}), pipes: map[*pipe]struct{}{}}
	l.closed, l.end = context.WithCancel(context.Background())
	l.running.Go(l.accept)
	return l, nil
}

// Set changes the mode.
func (l *Link) Set(m Mode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.pipes {
		if m == Reset || p.lost && m != Deaf {
			l.drop(p)
		}
	}
	l.mode = m
	close(l.changed)
	l.changed = make(chan struct{})
}

// Delay makes the answers on new connections late, as a broker's that is far away.
func (l *Link) Delay(by time.Duration) { l.distance.Store(int64(by)) }

// Close ends all connections.
func (l *Link) Close() error {
	err := l.listener.Close()
	l.end()
	l.Set(Reset)
	l.running.Wait()
	return err
}

func (l *Link) accept() {
	for {
		c, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		p := &pipe{client: c, gone: make(chan struct{})}
		l.mu.Lock()
		l.pipes[p] = struct{}{}
		if l.mode == Reset {
			l.drop(p)
		}
		l.mu.Unlock()
		l.running.Go(func() { l.serve(p) })
	}
}

// drop ends a connection as a reset does. The caller holds mu.
func (l *Link) drop(p *pipe) {
	if _, there := l.pipes[p]; !there {
		return
	}
	delete(l.pipes, p)
	close(p.gone)
	for _, c := range []net.Conn{p.client, p.broker} {
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetLinger(0) // a reset, not an end; closed or not, it is gone
			_ = t.Close()
		}
	}
}

func (l *Link) serve(p *pipe) {
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.drop(p)
	}()
	if l.pass(p, false) != forward {
		return
	}
	var d net.Dialer
	broker, err := d.DialContext(l.closed, "tcp", l.target)
	if err != nil {
		return // the broker is down: so is the connection
	}
	l.mu.Lock()
	_, there := l.pipes[p]
	if p.broker = broker; !there {
		_ = broker.Close()
	}
	l.mu.Unlock()
	var pumps sync.WaitGroup
	pumps.Go(func() { l.pump(p, broker, p.client, false) })
	answers := newLate(p.client, time.Duration(l.distance.Load()))
	defer answers.end()
	pumps.Go(func() { l.pump(p, answers, broker, true) })
	pumps.Wait()
}

// pump copies one way until the connection ends, which it then ends for the other side, too.
func (l *Link) pump(p *pipe, to io.Writer, from net.Conn, answers bool) {
	var requests frames
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if !answers {
				l.mu.Lock()
				p.carried |= requests.kinds(buf[:n])
				l.mu.Unlock()
			}
			switch l.pass(p, answers) {
			case forward:
				if _, err := to.Write(buf[:n]); err != nil {
					return
				}
			case gone:
				return
			}
		}
		if err != nil {
			if l.pass(p, answers) == forward {
				closeWrite(to)
			}
			return
		}
	}
}

type verdict int

const (
	forward verdict = iota
	swallow
	gone
)

// pass says what becomes of bytes that were read. It returns when that is known: a stalled link is waited for.
func (l *Link) pass(p *pipe, answers bool) verdict {
	for {
		l.mu.Lock()
		_, there := l.pipes[p]
		stalled := l.mode == Stalled || l.mode == NoGroup && p.carried&ofGroup != 0 || l.mode == Blind && p.carried != 0
		swallowed := answers && l.mode == Deaf
		p.lost = p.lost || swallowed
		changed := l.changed
		l.mu.Unlock()
		switch {
		case !there:
			return gone
		case swallowed:
			return swallow
		case !stalled:
			return forward
		}
		select {
		case <-changed:
		case <-p.gone:
			return gone
		}
	}
}
