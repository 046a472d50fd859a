package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"blobfeed/internal/status"
)

// What check advises is also in the log and on the status page of run, and in the last line of a verb.
func TestErrorsCarryAdvice(t *testing.T) {
	t.Parallel()
	const advice = "connection refused: start the brokers, or set BRIDGE_KAFKA_BROKERS to their addresses"
	for name, value := range map[string]string{
		"SOURCE_URL": "file://" + abs(t, "../../testdata/real-2020"), "KAFKA_BROKERS": "127.0.0.1:1",
		"HTTP_ADDR": "127.0.0.1:0", "LOG_FORMAT": "json",
	} {
		setenv(t, "BRIDGE_"+name, value)
	}
	if code, _, stderr := call(t, "status"); code != exitFailed || !strings.Contains(stderr, advice) {
		t.Errorf("status: exit code %d: %s", code, stderr)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan int, 1)
	var stderr safeBuffer
	go func() { ended <- execute(ctx, environ(t), []string{"run"}, io.Discard, &stderr) }()
	await(t, "the log says so", func() bool { return strings.Contains(stderr.String(), advice) })
	_, address, _ := strings.Cut(stderr.String(), `"msg":"serving HTTP","address":"`)
	address, _, _ = strings.Cut(address, `"`)
	await(t, "the status page says so", func() bool {
		return slices.ContainsFunc(statusAt(t, address).Errors, func(f status.Failure) bool {
			return strings.Contains(f.Error+": "+f.Remedy, advice)
		})
	})
	stop()
	<-ended
}
