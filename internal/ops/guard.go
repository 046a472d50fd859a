package ops

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// Guard protects what Handler shows. The probes are open: a kubelet knows the address of the pod and nothing else.
type Guard struct {
	// Hosts are host names that requests may use, besides addresses and names without a dot; "*" allows any name.
	// An attacker's page can make a browser send its own host name to our address, and would read the answer.
	Hosts []string
	// Token returns the secret that a request must have. Nil: none is needed. "" rejects every request.
	Token func() string
}

// Wrap returns h behind the guard.
func (g *Guard) Wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case isProbe(r):
		case !g.host(r.Host):
			text(w, http.StatusMisdirectedRequest, "this host name is not allowed: add it to BRIDGE_HTTP_HOSTS\n")
			return
		case !g.bears(r):
			w.Header().Set("WWW-Authenticate", `Basic realm="bridge"`) // by which a browser asks for it
			text(w, http.StatusUnauthorized,
				"a token is required: Authorization: Bearer <BRIDGE_HTTP_TOKEN>, or as a password\n")
			return
		}
		h.ServeHTTP(w, r)
	})
}

// host reports whether a request may use this host name. An attacker can't own an address, or a name without a dot.
func (g *Guard) host(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	literal := strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	return !strings.Contains(name, ".") && !strings.Contains(name, ":") || net.ParseIP(literal) != nil ||
		slices.ContainsFunc(g.Hosts, func(allowed string) bool {
			return allowed == "*" || strings.EqualFold(allowed, name)
		})
}

// bears reports whether a request has the token, in a time that does not depend on how much of it is right.
func (g *Guard) bears(r *http.Request) bool {
	if g.Token == nil {
		return true
	}
	want := g.Token()
	have, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		_, have, _ = r.BasicAuth()
	}
	h, w := sha256.Sum256([]byte(have)), sha256.Sum256([]byte(want))
	return want != "" && subtle.ConstantTimeCompare(h[:], w[:]) == 1
}

// Enough for scrapers, probes and people.
const (
	maxConnections = 100
	maxPerAddress  = 32
	// maxAnswers is how many requests are answered at a time, probes not counted. An answer can take megabytes.
	maxAnswers = 16
)

// connections limits the number of connections. One more than an address may have closes the oldest of this address,
// and one more than all may have closes the oldest of the address that has most: whatever a client does with its
// connections, it can neither keep the probes out nor cut the answers to others. Only a probe that is being answered
// keeps its connection.
type connections struct {
	most, perAddress int
	turns            chan struct{} // one for each request that is being answered

	mu   sync.Mutex
	open []*connection // by the beginning of the last request, or of the connection
}

type connection struct {
	net.Conn
	from  netip.Prefix
	probe bool // is being answered
}

type connKey struct{}

// limit applies the limits to a server.
func (c *connections) limit(srv *http.Server) {
	h := srv.Handler
	srv.ConnState = c.changed
	srv.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, conn)
	}
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _ := r.Context().Value(connKey{}).(net.Conn)
		probe := isProbe(r)
		c.answers(conn, probe)
		defer c.answered(conn)
		if !probe {
			select {
			case c.turns <- struct{}{}:
				defer func() { <-c.turns }()
			case <-r.Context().Done():
				return
			}
		}
		h.ServeHTTP(w, r)
	})
}

// isProbe reports whether a request is one of a kubelet's: it costs nothing, and everybody may ask.
func isProbe(r *http.Request) bool { return r.URL.Path == "/healthz" || r.URL.Path == "/readyz" }

func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.open = append(c.open, &connection{Conn: conn, from: address(conn)})
		c.evict()
	case http.StateClosed:
		c.open = slices.DeleteFunc(c.open, func(other *connection) bool { return other.Conn == conn })
	}
}

// evict closes a connection if the newest one is above a limit.
func (c *connections) evict() {
	count := map[netip.Prefix]int{}
	for _, o := range c.open {
		count[o.from]++
	}
	from := c.open[len(c.open)-1].from
	if count[from] <= c.perAddress {
		if len(c.open) <= c.most {
			return
		}
		for other, n := range count {
			if n > count[from] {
				from = other
			}
		}
	}
	i := slices.IndexFunc(c.open, func(o *connection) bool { return o.from == from && !o.probe })
	if i < 0 {
		return // probes, which end at once
	}
	conn := c.open[i].Conn
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn() // whose Close does not wait for the client
	}
	_ = conn.Close() // what is written to it fails from now on
	c.open = slices.Delete(c.open, i, i+1)
}

// answers puts a connection behind all others: it has a request.
func (c *connections) answers(conn net.Conn, probe bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.index(conn); i >= 0 {
		o := c.open[i]
		o.probe = probe
		c.open = append(slices.Delete(c.open, i, i+1), o)
	}
}

func (c *connections) answered(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.index(conn); i >= 0 {
		c.open[i].probe = false
	}
}

func (c *connections) index(conn net.Conn) int {
	return slices.IndexFunc(c.open, func(o *connection) bool { return o.Conn == conn })
}

// address returns whose a connection is. A client with IPv6 mostly has 64 bits of addresses.
func address(conn net.Conn) netip.Prefix {
	at, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := at.Addr().Unmap().WithZone(""), 32
	if ip.Is6() {
		bits = 64
	}
	p, _ := ip.Prefix(bits) // both lengths are valid
	return p
}
