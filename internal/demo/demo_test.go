package demo

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"blobfeed/internal/plain"
)

// A port that somebody names is used, or is an error. If the usual one is taken, another is, and the output says so.
func TestTakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	var settings *plain.SettingsError
	if _, err := broker(port, true); !errors.As(err, &settings) || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("%v", err)
	}
	c, err := broker(port, false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var out strings.Builder
	if sayTaken(&out, port, c.ListenAddrs()[0]); !strings.Contains(out.String(), "is taken") {
		t.Errorf("%q", out.String())
	}
	out.Reset()
	if sayTaken(&out, port, l.Addr().String()); out.Len() > 0 {
		t.Errorf("%q", out.String())
	}
}

// A setting that the demo does not know is an error before the demo says that anything runs.
func TestWrongFormat(t *testing.T) {
	var out bytes.Buffer
	err := Run(t.Context(), 0, false, "xml", "wrapped", "test", &out)
	if !errors.As(err, new(*plain.SettingsError)) || out.Len() > 0 {
		t.Errorf("%v: %s", err, out.String())
	}
}

type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

// A demo whose output goes nowhere ends.
func TestNobodyReads(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := Run(ctx, 0, false, "json", "wrapped", "test", full{}); !errors.Is(err, errFull) {
		t.Error(err)
	}
}
