package main

import (
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// The second signal ends without waiting, but not what is the first once more.
func TestSignals(t *testing.T) {
	t.Parallel()
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
	base, _, stop := running(t)
	await(t, "readiness", func() bool {
		code, _ := get(t, base+"/readyz")
		return code == http.StatusOK
	})
	stop(syscall.SIGHUP)
}
