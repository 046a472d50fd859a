package ops

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// A client that holds as many connections as it can, each with half of a request, does not keep a probe out, and does
// not end what is being answered; nor do its connections grow without bound.
func TestConnectionsAreLimited(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	answering, release := make(chan struct{}), make(chan struct{})
	go func() {
		ended <- Serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				close(answering)
				<-release
			}
			text(w, 200, "ok")
		}))
	}()
	defer func() { cancel(); <-ended }()
	slow := make(chan error, 1)
	go func() {
		resp, err := http.Get("http://" + l.Addr().String() + "/slow")
		if err == nil {
			err = resp.Body.Close()
		}
		slow <- err
	}()
	<-answering
	var held []net.Conn
	for range maxConnections + 20 {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n"); err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
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
	close(release)
	if err := <-slow; err != nil {
		t.Errorf("the request that was being answered: %v", err)
	}
	probe, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer probe.Close()
	if _, err := io.WriteString(probe, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(probe), nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("the probe: %v, %v", resp, err)
	}
}

func isTimeout(err error) bool {
	ne, ok := err.(net.Error)
	return ok && ne.Timeout()
}

// A connection whose request is being answered is not ended for a new one.
func TestAnswersAreNotCut(t *testing.T) {
	c := &connections{most: 1}
	busy, newer := &closing{}, &closing{}
	c.changed(busy, http.StateNew)
	c.answers(busy)
	c.changed(newer, http.StateNew)
	if busy.closed || !newer.closed {
		t.Errorf("the one in use is closed: %t, the new one: %t", busy.closed, newer.closed)
	}
	c.changed(newer, http.StateClosed)
	c.waits(busy)
	c.changed(busy, http.StateClosed)
	if c.open != 0 || len(c.waiting) != 0 {
		t.Errorf("%d open, %d waiting, and all are closed", c.open, len(c.waiting))
	}
}

type closing struct {
	net.Conn
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }
