package catalog

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A value is made once for all that ask, again when it has held its time, and again after an error.
func TestCache(t *testing.T) {
	made, now := 0, time.Unix(0, 0)
	var fails error
	c := newCache(func(_ context.Context, name string) (int, error) {
		made++
		return made, fails
	}, time.Second, func() time.Time { return now })
	get := func(name string, want int, wantErr error) {
		t.Helper()
		if got, err := c.get(t.Context(), name); got != want || !errors.Is(err, wantErr) {
			t.Errorf("%s is %d, %v; want %d, %v", name, got, err, want, wantErr)
		}
	}
	get("a", 1, nil)
	get("b", 2, nil)
	now = now.Add(time.Second)
	get("a", 1, nil)
	now = now.Add(1)
	get("a", 3, nil)
	fails = errors.New("down")
	get("c", 0, fails)
	fails = nil
	get("c", 5, nil)
	c.holds, now = 0, now.Add(time.Hour)
	get("a", 3, nil)
}
