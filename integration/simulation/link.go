package simulation

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// link is an instance's way to the brokers. It passes requests on one by one, so that each can be held, delayed or
// lost.
type link struct {
	dialer  dialer
	latency func(connection, request int) time.Duration
	// patience, if not zero, is after how long on its way a request is dropped.
	patience time.Duration

	*gate // of requests and answers; nothing that it holds is lost

	mu    sync.Mutex
	cut   bool
	deaf  bool
	conns map[*connection]bool
	dials int
	traps []*trap
	stall map[kmsg.Key]time.Time // until when requests of a kind wait
}

type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// trap is what happens to the next requests of a kind.
type trap struct {
	key  kmsg.Key
	left int
	kind Kind
	hold time.Duration // of a late one
}

// connection is one between an instance and a broker.
type connection struct {
	near, far net.Conn // the link's ends: to the instance, to the broker
}

var errCut = errors.New("the network is down")

// lingering is how long the broker's end stays open when the instance has closed its own: what is on its way arrives.
const lingering = 30 * time.Second

func newLink(dial dialer, latency func(connection, request int) time.Duration) *link {
	return &link{
		dialer: dial, latency: latency, gate: newGate(),
		conns: map[*connection]bool{}, stall: map[kmsg.Key]time.Time{},
	}
}

// dial is the Kafka client's dialer.
func (l *link) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	l.mu.Lock()
	n := l.dials
	l.dials++
	l.mu.Unlock()
	select {
	case <-l.passage():
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.mu.Lock()
	cut := l.cut
	l.mu.Unlock()
	if cut {
		return nil, errCut
	}
	far, err := l.dialer(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	client, near := net.Pipe()
	c := &connection{near: near, far: far}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = true
	go l.requests(c, n)
	go l.answers(c)
	return client, nil
}

// requests passes them to the broker.
func (l *link) requests(c *connection, n int) {
	defer l.forget(c)
	for i := 0; ; i++ {
		var size [4]byte
		if _, err := io.ReadFull(c.near, size[:]); err != nil {
			return
		}
		frame := make([]byte, 4+binary.BigEndian.Uint32(size[:]))
		copy(frame, size[:])
		if _, err := io.ReadFull(c.near, frame[4:]); err != nil {
			return
		}
		key, sent := kmsg.Key(binary.BigEndian.Uint16(frame[4:])), time.Now()
		time.Sleep(max(l.latency(n, i), time.Until(l.stalled(key))))
		<-l.passage()
		switch trap := l.caught(key); {
		case trap == nil:
		case trap.kind == Late:
			_ = c.near.Close()
			time.Sleep(trap.hold)
		default:
			_ = c.near.Close()
		}
		if l.patience > 0 && time.Since(sent) > l.patience {
			return
		}
		if _, err := c.far.Write(frame); err != nil {
			return
		}
	}
}

// answers passes them to the instance.
func (l *link) answers(c *connection) {
	defer c.near.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := c.far.Read(buf)
		if err != nil {
			return
		}
		<-l.passage()
		l.mu.Lock()
		deaf := l.deaf
		l.mu.Unlock()
		if deaf {
			continue
		}
		// If the instance is gone, the rest is read nevertheless: else the broker would wait for its reader.
		_, _ = c.near.Write(buf[:n])
	}
}

// forget closes the broker's end, when what is on its way had time to arrive.
func (l *link) forget(c *connection) {
	time.AfterFunc(lingering, func() { _ = c.far.Close() })
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

func (l *link) caught(key kmsg.Key) *trap {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.traps {
		if t.key == key && t.left > 0 {
			t.left--
			return t
		}
	}
	return nil
}

func (l *link) stalled(key kmsg.Key) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stall[key]
}

func (l *link) setStall(key kmsg.Key, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stall[key] = until
}

// sever closes the connections, and refuses new ones until mend.
func (l *link) sever() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for c := range l.conns {
		_ = c.near.Close()
	}
}

// mend ends everything that is wrong.
func (l *link) mend() {
	l.mu.Lock()
	l.cut, l.deaf, l.traps = false, false, nil
	l.mu.Unlock()
	l.release()
}

func (l *link) deafen(deaf bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deaf = deaf
	if !deaf {
		for c := range l.conns { // whose answers are lost
			_ = c.near.Close()
		}
	}
}

func (l *link) set(t *trap) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.traps = append(l.traps, t)
}
