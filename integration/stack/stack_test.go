package stack

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFreePorts(t *testing.T) {
	seen := map[int]bool{}
	for range 5 {
		free, err := freePorts(4)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range free {
			if seen[p] || p < firstPort || p >= lastPort {
				t.Errorf("port %d is given twice, or out of range", p)
			}
			seen[p] = true
			l, err := net.Listen("tcp", address(p))
			if err != nil {
				t.Errorf("port %d is not free: %v", p, err)
				continue
			}
			_ = l.Close()
		}
	}
}

func TestStartRefuses(t *testing.T) {
	if _, err := Start(t.Context(), Options{Brokers: 2}, nil); err == nil ||
		!strings.Contains(err.Error(), "0, 1 or 3") {
		t.Errorf("got %v", err)
	}
}

func TestStartOfNothing(t *testing.T) {
	s, err := Start(t.Context(), Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}

// Every tool that is missing is named at once, with what to do, and nothing of the cache is cleared.
func TestMissingTools(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	cache := t.TempDir()
	t.Setenv("STACK_CACHE", cache)
	_, err := Start(t.Context(), Options{Brokers: 1, Registry: true, Azurite: true}, t.Logf)
	if err == nil {
		t.Fatal("started without any tool")
	}
	for tool, hint := range installHints {
		if !strings.Contains(err.Error(), "looking for "+tool+":") || !strings.Contains(err.Error(), hint) {
			t.Errorf("the error does not say what to do about %s: %v", tool, err)
		}
	}
	_, err = Start(t.Context(), Options{Azurite: true}, t.Logf)
	if err == nil || strings.Contains(err.Error(), "java") {
		t.Errorf("Azurite alone needs no Java: %v", err)
	}
}

// With the cache full the tools that fill it are not needed.
func TestStampMakesFetchersNeedless(t *testing.T) {
	d := download{file: "pom.xml", want: []byte("content")}
	cache := t.TempDir()
	if d.done(cache) {
		t.Error("done without a stamp")
	}
	for content, want := range map[string]bool{"other": false, "content": true} {
		if err := os.WriteFile(d.stamp(cache), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if d.done(cache) != want {
			t.Errorf("done with a stamp that says %q: %v", content, !want)
		}
	}
}

// Waiting for the cache ends with the context.
func TestLockCacheIsBounded(t *testing.T) {
	cache := t.TempDir()
	lock, err := lockCache(t.Context(), cache, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := lockCache(ctx, cache, t.Logf); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
}

// A run's directory goes with the run; one that is held, or is not a run's, stays.
func TestClaimDirSweeps(t *testing.T) {
	runs := t.TempDir()
	left := filepath.Join(runs, runPrefix+"left")
	foreign := filepath.Join(runs, "foreign")
	for _, dir := range []string{left, foreign} {
		if err := os.MkdirAll(filepath.Join(dir, "kafka-0"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var first, second Stack
	for _, s := range []*Stack{&first, &second} {
		if err := s.claimDir(runs); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]bool{left: false, foreign: true, first.dir: true, second.dir: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", dir, !want, want)
		}
	}
	kept := first.dir
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kept); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Close: %v", err)
	}
}
