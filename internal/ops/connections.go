package ops

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
)

// maxConnections is enough for scrapers, probes and people.
const maxConnections = 100

// connections limits the number of connections. One more than the limit closes the oldest connection without a request
// in work: a client that only opens connections, or sends requests a byte at a time, must not keep the probes out.
type connections struct {
	most int

	mu      sync.Mutex
	open    int
	waiting []net.Conn // the oldest first
}

type connKey struct{}

// limit applies the limit to a server.
func (c *connections) limit(srv *http.Server) {
	h := srv.Handler
	srv.ConnState = c.changed
	srv.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, conn)
	}
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _ := r.Context().Value(connKey{}).(net.Conn)
		c.answers(conn)
		defer c.waits(conn)
		h.ServeHTTP(w, r)
	})
}

func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.open++
		c.waiting = append(c.waiting, conn)
		if c.open > c.most {
			_ = c.waiting[0].Close() // it is counted until the server says that it is closed
			c.waiting = c.waiting[1:]
		}
	case http.StateClosed:
		c.open--
		c.waiting = slices.DeleteFunc(c.waiting, func(other net.Conn) bool { return other == conn })
	}
}

func (c *connections) answers(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = slices.DeleteFunc(c.waiting, func(other net.Conn) bool { return other == conn })
}

func (c *connections) waits(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, conn)
}
