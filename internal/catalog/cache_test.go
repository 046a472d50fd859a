package catalog

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A value is made once for all that ask, again when it has held its time, and again after an error.
func TestCache(t *testing.T) { synctest.Test(t, testCache) }

func testCache(t *testing.T) {
	made := 0
	var fails error
	c := newCache(func(_ context.Context, name string) (int, error) {
		made++
		return made, fails
	}, time.Second)
	get := func(name string, want int, wantErr error) {
		t.Helper()
		if got, err := c.get(t.Context(), name); got != want || !errors.Is(err, wantErr) {
			t.Errorf("%s is %d, %v; want %d, %v", name, got, err, want, wantErr)
		}
	}
	get("a", 1, nil)
	get("b", 2, nil)
	time.Sleep(time.Second)
	get("a", 1, nil)
	time.Sleep(time.Nanosecond)
	get("a", 3, nil)
	fails = errors.New("down")
	get("c", 0, fails)
	fails = nil
	get("c", 5, nil)
	time.Sleep(time.Hour)
	c.holds = 0
	get("a", 3, nil)
}
