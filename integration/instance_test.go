//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"blobfeed/internal/ops"
)

// eventually asks until cond holds.
func eventually(t *testing.T, limit time.Duration, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); !cond(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("after %s still not: %s", limit, what)
		}
	}
}

var httpLine = regexp.MustCompile(`"serving HTTP","address":"([^"]+)"`)

// url returns where the program serves HTTP, which its log tells.
func (p *program) url(t *testing.T) string {
	t.Helper()
	var address string
	eventually(t, 10*time.Second, "the program serves HTTP", func() bool {
		if m := httpLine.FindStringSubmatch(p.log.String()); m != nil {
			address = m[1]
		}
		return address != ""
	})
	return "http://" + address
}

// get returns what the program answers; code 0 is no answer.
func get(url string) (code int, body string) {
	resp, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

func (p *program) status(t *testing.T) (s ops.Status) {
	t.Helper()
	_, body := get(p.url(t) + "/status")
	if err := json.Unmarshal([]byte(body), &s); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return s
}

// metric returns the value of a series, such as x_total{a="b"}; ok is false if a scrape does not have it.
func (p *program) metric(t *testing.T, series string) (value float64, ok bool) {
	t.Helper()
	_, body := get(p.url(t) + "/metrics")
	_, rest, ok := strings.Cut("\n"+body, "\n"+series+" ")
	if !ok {
		return 0, false
	}
	text, _, _ := strings.Cut(rest, "\n")
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatalf("%s: %v", series, err)
	}
	return value, true
}

func (p *program) expectMetric(t *testing.T, series string, want float64) {
	t.Helper()
	if have, ok := p.metric(t, series); !ok || have != want {
		t.Errorf("%s = %v, %v; want %v", series, have, ok, want)
	}
}

// ready waits until the program is, and returns how long that took.
func (p *program) ready(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	eventually(t, 30*time.Second, "the program is ready",
		func() bool { code, _ := get(p.url(t) + "/readyz"); return code == 200 })
	return time.Since(began)
}

// unready waits until the program says why it is not.
func (p *program) unready(t *testing.T, limit time.Duration, says string) {
	t.Helper()
	var body string
	eventually(t, limit, fmt.Sprintf("unready for %q", says), func() bool {
		var code int
		code, body = get(p.url(t) + "/readyz")
		return code == 503 && strings.Contains(body, says)
	})
	if code, _ := get(p.url(t) + "/healthz"); code != 200 {
		t.Errorf("it is not alive: %d", code)
	}
}
