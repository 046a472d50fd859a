package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blobfeed/internal/testing/fakebroker"
)

// The report begins with the verdict, and --check turns it into an exit code.
func TestStatusCheck(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- execute(ctx, environ(t), []string{"run"}, io.Discard, io.Discard) }()
	await(t, "the bridge is up to date", func() bool {
		code, stdout, _ := call(t, "status", "--check")
		return code == exitOK && strings.HasPrefix(stdout, "up to date\n")
	})
	stop()
	<-ended
	const nobody = "nobody is running: the last commit was "
	await(t, "the broker knows that the instance has left, and it is an error", func() bool {
		code, stdout, stderr := call(t, "status", "--check")
		return code == exitFailed && strings.HasPrefix(stdout, nobody) && strings.Contains(stderr, nobody)
	})
	if code, stdout, _ := call(t, "status"); code != exitOK || !strings.HasPrefix(stdout, nobody) {
		t.Errorf("without --check: exit code %d: %s", code, stdout)
	}
	if code, _, stderr := call(t, "status", "--check", "--watch", "1s"); code != exitUsage ||
		!strings.Contains(stderr, "remove --watch") {
		t.Errorf("with --watch: exit code %d: %s", code, stderr)
	}
}

// A copy of the feed that grows after run --once is to be delivered.
func TestStatusOfAGrownCopy(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	var segment, held string
	copied(t, func(dir string) error {
		segment, held = filepath.Join(dir, "idx/segments/2020/05/29/2100"), filepath.Join(dir, "held")
		return os.Rename(segment, held)
	})
	runToEnd(t)
	if code, stdout, _ := call(t, "status", "--check"); code != exitOK || !strings.HasPrefix(stdout, "up to date") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	if err := os.Rename(held, segment); err != nil {
		t.Fatal(err)
	}
	code, stdout, _ := call(t, "status", "--check")
	if code != exitFailed || strings.Contains(stdout, "all is delivered") ||
		!strings.Contains(stdout, ", and the feed has later segments, from 2020/05/29/2100 on\n-> start an instance") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
}

// After run --once nobody is missing, until the bridge is asked for more.
func TestStatusCheckAfterOnce(t *testing.T) {
	t.Parallel()
	c := deliveredReal(t)
	const well = "up to date: run --once delivered everything "
	if code, stdout, stderr := call(t, "status", "--check"); code != exitOK || !strings.HasPrefix(stdout, well) {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	if code, _, stderr := call(t, "seek", "--to", "earliest", "--yes"); code != exitOK {
		t.Fatalf("seek: exit code %d: %s", code, stderr)
	}
	if code, stdout, _ := call(t, "status", "--check"); code != exitFailed ||
		!strings.Contains(stdout, " ago, and delivery will begin at the oldest segment, where bridge seek has moved the "+
			"bridge\n-> start ") {
		t.Errorf("after a seek: exit code %d: %s", code, stdout)
	}
	deleteTopic(t, fakebroker.Admin(t, c)) // an instance alone does not mend that
	const gone = "; topic changes does not exist: its records are gone\n-> create it with 4 " +
		"partitions, as it had (bridge check prints the command), to continue with new records, or restart from " +
		"scratch with bridge reset, or with another"
	if _, stdout, _ := call(t, "status"); !strings.HasPrefix(stdout, "nobody is running: ") ||
		!strings.Contains(stdout, gone) || strings.Contains(stdout, "start an instance") {
		t.Errorf("without its topic: %s", stdout)
	}
}
