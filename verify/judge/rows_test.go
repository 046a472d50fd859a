package judge

import (
	"fmt"
	"testing"
	"time"

	"blobfeed/bridge"
	simulated "blobfeed/internal/testing/feedsim/account"
	"blobfeed/source/inventory"
	"blobfeed/verify"
)

// Rows are no events: without a state, the number of events says which segments are delivered.
func TestRowsAreNoEvents(t *testing.T) {
	c := &comparison{Replay: &verify.Replay{}, pass: &feedScan{}}
	c.Note(verify.Record{Key: []byte("c/b"), Headers: []verify.Header{{Key: "scan", Value: []byte("s1")}}})
	if c.noted != 0 {
		t.Errorf("%d events", c.noted)
	}
}

// A later scan, with a sweep, is judged after the initial one: its rows and deletions are no events.
func TestRescan(t *testing.T) {
	for _, settings := range []string{"", "DELETES=both HEADERS=none", "DELIVERY=at_least_once",
		"FORMAT=avro ENVELOPE=enriched DELETES=tombstone"} {
		t.Run(settings, func(t *testing.T) {
			w := newWorld(t, settings)
			w.change()
			w.publish(t)
			w.publish(t)
			w.publish(t)
			deliver(t)
			lost := simulated.New(func() time.Time { return w.now }) // an account that has lost deletions
			for i := range 10 {
				lost.Put("photos", inventory.Blob{Name: fmt.Sprint("again/", i)})
			}
			rescan(t, lost)
			w.publish(t)
			scan(t, bridge.ScanYes, lost)
			for _, feed := range []bool{false, true} {
				v := bySettings(t, "")
				v.ReadFeed = feed
				rs, err := v.run(t.Context())
				if err != nil || Verdict(rs) != nil {
					t.Fatalf("feed %t: %v, %v: %s", feed, err, Verdict(rs), shown(t, rs))
				}
				if scans := rs[0].Scans; len(scans) != 2 || scans[0].Initial == scans[1].Initial {
					t.Errorf("%+v", scans)
				}
			}
		})
	}
}

// A re-scan right behind the initial scan takes its place in the state, and not its promise: no marker is below the end
// of the first listing.
func TestRescanKeepsTheFloor(t *testing.T) {
	w := newWorldAt(t, "", 50*time.Minute)
	rescan(t, w.Account)
	w.change()
	w.publish(t)
	w.publish(t)
	scan(t, bridge.ScanYes, w.Account)
	rs, err := bySettings(t, "").run(t.Context())
	if err != nil || Verdict(rs) != nil {
		t.Fatalf("%v, %v: %s", err, Verdict(rs), shown(t, rs))
	}
}
