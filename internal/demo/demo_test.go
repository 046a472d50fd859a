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
	err := Run(t.Context(), Options{Format: "xml", Envelope: "wrapped"}, &out)
	if !errors.As(err, new(*plain.SettingsError)) || out.Len() > 0 {
		t.Errorf("%v: %s", err, out.String())
	}
}

// The status page is where somebody wants it, nowhere if it is off, and else where there is room.
func TestAddressOfThePage(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := taken.Addr().String()
	var settings *plain.SettingsError
	if _, err := listen(at); !errors.As(err, &settings) || !strings.Contains(err.Error(), "BRIDGE_HTTP_ADDR: ") {
		t.Errorf("an address that is taken: %v", err)
	}
	var out bytes.Buffer
	how := Options{Format: "json", Envelope: "wrapped", Page: at}
	if err := Run(t.Context(), how, &out); !errors.As(err, &settings) || out.Len() > 0 {
		t.Errorf("%v: %s", err, out.String())
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	for address, there := range map[string]bool{at: true, "off": false, "": true} {
		l, err := listen(address)
		if err != nil || (l != nil) != there || address == at && l.Addr().String() != at {
			t.Errorf("%q: %v, %v", address, l, err)
		}
		if l != nil {
			l.Close()
		}
	}
}

type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

// A demo whose output goes nowhere ends.
func TestNobodyReads(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := Run(ctx, Options{Format: "json", Envelope: "wrapped"}, full{}); !errors.Is(err, errFull) {
		t.Error(err)
	}
}
