package demo

import (
	"context"
	"fmt"
	"time"

	"blobfeed/internal/testing/feedsim"
)

// account is one that somebody could have: photos and invoices come, pages and reports are overwritten, uploads are
// deleted when they are complete.
type account struct {
	feed    *feedsim.Feed
	n       int // events so far
	segment time.Time
	at      time.Duration // of the last event in the segment
}

// blobs are what events are of, in turn. %d is a number that grows; without it, a blob is overwritten.
var blobs = []struct {
	container, name, contentType string
	size                         int64
	delete                       bool
}{
	{"photos", "2026/summer/IMG_%d.jpg", "image/jpeg", 3_412_870, false},
	{"invoices", "2026/INV-%d.pdf", "application/pdf", 84_112, false},
	{"$web", "index.html", "text/html", 12_480, false},
	{"uploads", "video-%d.mp4.part", "video/mp4", 52_428_800, false},
	{"photos", "2026/summer/IMG_%d.jpg", "image/jpeg", 2_980_033, false},
	{"videos", "2026/video-%d.mp4", "video/mp4", 734_003_200, false},
	{"uploads", "video-%d.mp4.part", "video/mp4", 0, true},
	{"reports", "2026/sales by region.csv", "text/csv", 48_213, false},
}

// happen appends events to the open segment.
func (a *account) happen(ctx context.Context, events int) error {
	if begin := a.feed.Segment(); begin != a.segment {
		a.segment, a.at = begin, 0
	}
	changes := make([]feedsim.Change, 0, events)
	for range events {
		b, round := &blobs[a.n%len(blobs)], int64(a.n/len(blobs))
		name := b.name
		switch b.container {
		case "photos":
			name = fmt.Sprintf(name, 4471+a.n)
		case "invoices":
			name = fmt.Sprintf(name, 1042+round)
		case "uploads", "videos":
			name = fmt.Sprintf(name, 7+round)
		}
		a.n++
		a.at += 53*time.Second + time.Duration(a.n*7919%9973)*time.Millisecond
		changes = append(changes, feedsim.Change{
			Container: b.container, Blob: name, Delete: b.delete, ContentType: b.contentType,
			Length: b.size + 131*round,
			Ticks:  a.segment.Add(a.at).UnixNano() / 100,
		})
	}
	if err := a.feed.AppendChanges(ctx, changes, nil); err != nil {
		return fmt.Errorf("growing the sample feed: %w", err)
	}
	return nil
}
