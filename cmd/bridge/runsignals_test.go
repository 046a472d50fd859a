package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// The second signal ends without waiting, but not what is the first once more.
func TestSignals(t *testing.T) {
	for name, c := range map[string]struct {
		after  time.Duration
		signal os.Signal
		second bool
	}{
		"at once":           {0, syscall.SIGTERM, false},
		"soon":              {echo, syscall.SIGTERM, false},
		"later":             {echo + 1, syscall.SIGTERM, true},
		"at once, not same": {0, syscall.SIGINT, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signals := make(chan os.Signal)
				var calls []string
				go obey(t.Context(), signals, func() { calls = append(calls, "first") },
					func() { calls = append(calls, "second") })
				signals <- syscall.SIGTERM
				time.Sleep(c.after)
				signals <- c.signal
				synctest.Wait()
				if second := len(calls) == 2; calls[0] != "first" || second != c.second {
					t.Errorf("called %q", calls)
				}
			})
		})
	}
}

// SIGHUP, which would end the process at once, stops a single bridge as SIGTERM does.
func TestHangup(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Fatal("SIGHUP is ignored: run the tests without nohup")
	}
	clusterFor(t)
	setAll(t, map[string]string{"HTTP_ADDR": "127.0.0.1:0", "LOG_FORMAT": "json"})
	log, ended := new(safeBuffer), make(chan int, 1)
	go func() { ended <- execute(context.Background(), []string{"run"}, io.Discard, log) }()
	await(t, "readiness", func() bool {
		_, address, _ := strings.Cut(log.String(), `"msg":"serving HTTP","address":"`)
		address, _, served := strings.Cut(address, `"`)
		if !served {
			return false
		}
		code, _ := get(t, "http://"+address+"/readyz")
		return code == http.StatusOK
	})
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	select {
	case code := <-ended:
		if code != exitOK {
			t.Errorf("exit code %d: %s", code, log)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("the process does not stop: %s", log)
	}
}
