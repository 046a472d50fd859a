package chaos

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// echo answers each byte with itself.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

func request(api uint16, body string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(2+len(body)))
	return append(binary.BigEndian.AppendUint16(b, api), body...)
}

// talk sends a request and returns what comes back within a short while.
func talk(t *testing.T, c net.Conn, b []byte) (string, error) {
	t.Helper()
	if _, err := c.Write(b); err != nil {
		return "", err
	}
	return hear(t, c, len(b))
}

func hear(t *testing.T, c net.Conn, n int) (string, error) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, n)
	n, err := io.ReadFull(c, b)
	return string(b[:n]), err
}

func TestLink(t *testing.T) {
	l, err := NewLink("127.0.0.1:0", echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", l.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	produce, fetch, heartbeat := request(0, "produce"), request(1, "fetch"), request(12, "heartbeat")
	works := func(c net.Conn, b []byte) {
		t.Helper()
		if got, err := talk(t, c, b); got != string(b) {
			t.Fatalf("got %q: %v", got, err)
		}
	}
	silent := func(c net.Conn, b []byte) {
		t.Helper()
		if got, err := talk(t, c, b); got != "" || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("got %q: %v, want silence", got, err)
		}
	}
	ended := func(c net.Conn) {
		t.Helper()
		if got, err := hear(t, c, 1); got != "" || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("got %q: %v, want the end", got, err)
		}
	}
	a, g := dial(), dial()
	works(a, produce)
	works(g, heartbeat)

	l.Set(Stalled)
	silent(a, produce)
	fresh := dial()
	silent(fresh, produce)
	l.Set(Open)
	for _, c := range []net.Conn{a, fresh} {
		if got, err := hear(t, c, len(produce)); got != string(produce) {
			t.Fatalf("what was sent meanwhile came as %q: %v", got, err)
		}
	}

	l.Set(NoGroup)
	works(a, produce)
	silent(g, produce) // the whole connection
	late := dial()
	works(late, produce)
	silent(late, heartbeat)
	l.Set(Blind)
	blind := dial()
	works(blind, produce)
	silent(blind, fetch)
	silent(dial(), heartbeat)
	l.Set(Open)
	works(a, heartbeat)

	l.Set(Deaf)
	silent(a, produce)
	l.Set(Open)
	ended(a)

	b := dial()
	works(b, produce)
	l.Set(Reset)
	ended(b)
	if c, err := net.Dial("tcp", l.listener.Addr().String()); err == nil { // the reset may be quicker than the dial
		ended(c)
		_ = c.Close()
	}
	l.Set(Open)
	works(dial(), produce)
}

// Requests are found however the bytes are cut.
func TestFrames(t *testing.T) {
	stream := append(append(request(3, "metadata\x00\x0c"), request(0, "")...), request(14, "sync")...)
	for size := 1; size <= len(stream); size++ {
		var f frames
		found := -1
		for at := 0; at < len(stream); at += size {
			if f.kinds(stream[at:min(at+size, len(stream))]) != 0 && found < 0 {
				found = at
			}
		}
		head := len(stream) - len("sync") - 1 // the last byte of the key
		if want := head / size * size; found != want {
			t.Errorf("in pieces of %d: found in the one at %d, want %d", size, found, want)
		}
	}
}
