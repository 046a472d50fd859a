package feedsim

import (
	"os"
	"strings"
	"testing"
)

// A late shard is neither listed nor there before Reveal, and all of it is there after.
func TestReveal(t *testing.T) {
	root, ctx := t.TempDir(), t.Context()
	f, err := New(Dir(root), Spec{Shards: 3, LateShards: 1, Versions: []int{6}})
	must(t, err)
	var events []Expected
	emit := func(e Expected) { events = append(events, e) }
	listed := func() int {
		text, err := os.ReadFile(root + "/idx/segments/2026/01/01/0000/meta.json")
		must(t, err)
		return strings.Count(string(text), "$blobchangefeed/")
	}
	must(t, f.Open(ctx))
	must(t, f.Append(ctx, 60, emit))
	f.Roll() // a late shard has no chunk to end
	must(t, f.Append(ctx, 60, emit))
	_, err = os.Stat(root + "/log/02")
	if listed() != 2 || !os.IsNotExist(err) {
		t.Errorf("%d shards are listed; the late one: %v", listed(), err)
	}
	must(t, f.Reveal(ctx))
	if listed() != 3 {
		t.Errorf("%d shards are listed", listed())
	}
	checkFeed(t, root, events)
	late := 0
	for _, e := range events {
		if e.Shard == 2 {
			late++
		}
	}
	if late == 0 {
		t.Error("nothing happened in the late shard")
	}
	must(t, f.Next(ctx)) // and in the next segment again
	must(t, f.Append(ctx, 60, emit))
	must(t, f.Finalize(ctx)) // which reveals
	checkFeed(t, root, events)
}
