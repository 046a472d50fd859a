package ops

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// serving serves until the test ends, and returns the address. A request for /slow is answered when the test ends.
func serving(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended, release := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- Serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				<-release
			}
			text(w, 200, "ok")
		}))
	}()
	t.Cleanup(func() {
		close(release)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// request opens a connection and writes to it.
func request(t *testing.T, address, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err == nil {
		t.Cleanup(func() { conn.Close() })
		_, err = io.WriteString(conn, text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// A client that holds as many connections as it can does not keep a probe out, whether they have half a request or are
// being answered; nor do they grow without bound.
func TestProbesGetThrough(t *testing.T) {
	for name, sent := range map[string]string{
		"half a request": "GET / HTTP/1.1\r\nHost: x\r\n",
		"in a handler":   "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			address := serving(t)
			var held []net.Conn
			for i := range maxConnections + 20 {
				held = append(held, request(t, address, sent))
				if i%20 != 0 {
					continue
				}
				probe := request(t, address, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
				if err := probe.SetReadDeadline(time.Now().Add(3 * time.Second)); err != nil {
					t.Fatal(err)
				}
				resp, err := http.ReadResponse(bufio.NewReader(probe), nil)
				if err != nil || resp.StatusCode != http.StatusOK {
					t.Fatalf("a probe beside %d connections: %v, %v", len(held), resp, err)
				}
			}
			// The first ones are ended, and not for their own timeout, which is 5 s.
			for _, conn := range held[:20] {
				if err := conn.SetReadDeadline(time.Now().Add(3 * time.Second)); err != nil {
					t.Fatal(err)
				}
				if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil || isTimeout(err) {
					t.Fatalf("%d bytes, %v", n, err)
				}
			}
		})
	}
}

func isTimeout(err error) bool {
	ne, ok := err.(net.Error)
	return ok && ne.Timeout()
}

// A client cuts its own answers, not those to others; a probe that is being answered is not cut.
func TestWhoseConnectionsEnd(t *testing.T) {
	c := &connections{most: 6, perAddress: 4}
	opened := func(from string) *closing {
		conn := &closing{from: from}
		c.changed(conn, http.StateNew)
		return conn
	}
	scraper := opened("10.0.0.1:1")
	c.answers(scraper, false)
	probe := opened("[2001:db8::1]:1")
	c.answers(probe, true)
	var flood []*closing
	for i := range 9 {
		conn := opened(fmt.Sprintf("[2001:db8::%x]:2", i)) // one network
		c.answers(conn, false)
		flood = append(flood, conn)
	}
	for range 2 { // all of the most are open: others get in, too
		opened("10.0.0.2:1")
	}
	if scraper.closed || probe.closed {
		t.Errorf("closed: the scraper %t, the probe %t", scraper.closed, probe.closed)
	}
	for i, conn := range flood {
		if want := i < 7; conn.closed != want {
			t.Errorf("connection %d of the flood is closed: %t", i, conn.closed)
		}
	}
	if len(c.open) != 6 {
		t.Errorf("%d are open", len(c.open))
	}
	c.answered(probe)
	if opened("[2001:db8::a]:1"); !probe.closed { // the oldest of its network, without a request
		t.Error("an idle connection outlives newer ones")
	}
}

// A request that has waited for its turn in vain leaves none behind.
func TestAnswersAtATime(t *testing.T) {
	c := &connections{most: 9, perAddress: 9, turns: make(chan struct{}, 1)}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { text(w, 200, "ok") })}
	c.limit(srv)
	answered := func(path string) bool {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		req, err := http.NewRequestWithContext(context.WithValue(ctx, connKey{}, &closing{}), http.MethodGet, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		w := &counting{}
		srv.Handler.ServeHTTP(w, req)
		return w.n > 0
	}
	c.turns <- struct{}{}
	if answered("/metrics") || !answered("/healthz") || !answered("/readyz") {
		t.Error("with every turn taken, only probes are answered")
	}
	if <-c.turns; len(c.turns) > 0 {
		t.Error("the turn was not given back")
	}
}

type counting struct {
	h http.Header
	n int
}

func (c *counting) Header() http.Header {
	if c.h == nil {
		c.h = http.Header{}
	}
	return c.h
}
func (c *counting) Write(p []byte) (int, error) { c.n += len(p); return len(p), nil }
func (c *counting) WriteHeader(int)             {}

type closing struct {
	net.Conn
	from   string
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

func (c *closing) RemoteAddr() net.Addr { return named(c.from) }

type named string

func (n named) Network() string { return "tcp" }
func (n named) String() string  { return string(n) }
