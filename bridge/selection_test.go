package bridge

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/verify"
)

// times notes the earliest and the latest event time.
type times struct{ first, last string }

func (s *times) Note(r verify.Record) {
	if r.Key == nil {
		return
	}
	at := string(r.Header("ce_time"))
	if s.first == "" || at < s.first {
		s.first = at
	}
	s.last = max(s.last, at)
}

func (s *times) Failures() []verify.Failure { return nil }

// The real feed of 2020, from a time to a time: what is inside is delivered, and the last marker is the end.
func TestStartAndEnd(t *testing.T) {
	const start, end = "2020-05-27T15:44:30.0000000Z", "2020-05-29T16:59:59.0000000Z"
	c := broker(t)
	o, r := options(t, c, realFeed)
	var err error
	if o.Feed.Start, err = history.ParseStart(start); err != nil {
		t.Fatal(err)
	}
	if o.Feed.End, err = history.ParseTime(end); err != nil {
		t.Fatal(err)
	}
	o.Once = false // the end time ends it
	for range 2 {
		if err := runOnce(t, o); err != nil {
			t.Fatal(err)
		}
	}
	seen := &times{}
	last := ""
	final := &lastMarker{&last}
	data, markers := consume(t, c, append(promises(), seen, final)...)
	if seen.first < start || seen.last > end || data == 0 || data != r.Emitted || markers == 0 {
		t.Errorf("%d records from %s to %s, %d markers", data, seen.first, seen.last, markers)
	}
	if want := o.Feed.End.String(); !strings.Contains(last, want) {
		t.Errorf("the last marker is %s, want %s", last, want)
	}
	if r.Filtered == 0 {
		t.Error("nothing was counted as filtered")
	}
	// Counted in events.jsonl.
	if data != 39 {
		t.Errorf("%d records", data)
	}
}

// An end that is a time includes the events of just that time; the text of an "updated" is an end within it.
func TestEndIsInclusive(t *testing.T) {
	t.Parallel()
	const at, before = "2020-05-27T16:34:05.4549959Z", "2020-05-27T16:34:05.4549958Z" // of one event
	wall, err := history.ParseTime(at)
	if err != nil {
		t.Fatal(err)
	}
	delivered := map[string]string{} // the last event by end
	for _, end := range []string{at, wall.String(), before} {
		c := broker(t)
		o, _ := options(t, c, realFeed)
		if o.Feed.End, err = history.ParseEnd(end); err != nil {
			t.Fatal(err)
		}
		o.Once = false
		must(t, runOnce(t, o))
		seen := &times{}
		last := ""
		consume(t, c, append(promises(), seen, &lastMarker{&last})...)
		if delivered[end] = seen.last; !strings.Contains(last, o.Feed.End.String()) {
			t.Errorf("the end %s has the marker %s", end, last)
		}
	}
	if delivered[at] != at || delivered[wall.String()] >= at || delivered[before] >= at {
		t.Errorf("the last events by end: %v", delivered)
	}
}

// An end that equals the marker of the feed's last segment: nothing at or below it can follow, so there is no
// later segment to wait for.
func TestEndEqualsLastMarker(t *testing.T) {
	t.Parallel()
	c := broker(t)
	all, _ := options(t, c, realFeed)
	all.Name, all.Topics.Names, all.Records.Frozen = "all", byTemplate(t, "all"), nil
	must(t, runOnce(t, all))
	last := ""
	consumeAll(t, c, []string{"all"}, &lastMarker{&last})
	_, last, _ = strings.Cut(last, `"resolved":"`)
	last, _, _ = strings.Cut(last, `"`)

	o, r := options(t, c, realFeed)
	var err error
	if o.Feed.End, err = history.ParseTime(last); err != nil {
		t.Fatal(err)
	}
	o.Once = false // the end time ends it
	must(t, runOnce(t, o))
	data, _ := consume(t, c, promises()...)
	if r.Emitted == 0 || data != r.Emitted || r.Read != realEvents {
		t.Errorf("%d records of %+v", data, r.Commit)
	}
}

type lastMarker struct{ value *string }

func (l *lastMarker) Note(r verify.Record) {
	if r.Key == nil {
		*l.value = max(*l.value, string(r.Value))
	}
}

func (l *lastMarker) Failures() []verify.Failure { return nil }

// The cursor moves over events that are left out, and so does the time by which lag is told.
func TestFilteredEventsAreDone(t *testing.T) {
	c := broker(t)
	o, r := options(t, c, realFeed)
	o.Feed.Filter = envelope.Filter{Containers: []string{"nosuch"}}
	for range 2 {
		if err := runOnce(t, o); err != nil {
			t.Fatal(err)
		}
	}
	if data, markers := consume(t, c, promises()...); data != 0 || markers != realSegments*partitions ||
		r.Filtered != realEvents ||
		r.Read != realEvents ||
		r.Seen.IsZero() {
		t.Errorf("%d records, %d markers, %+v", data, markers, r.Commit)
	}
}

func TestParseStart(t *testing.T) {
	now := time.Date(2026, 5, 5, 12, 30, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"":                               " after ",
		"earliest":                       " after ",
		"latest":                         "1777984200000000000.0000000000 after 2026/05/05/1114",
		"2026-05-05T10:00:00Z":           "1777975200000000000.0000000000 after 2026/05/05/0844",
		"1777975200000000000.0000000007": "1777975200000000000.0000000007 after 2026/05/05/0844",
		"yesterday":                      "error",
		"1969-05-05T10:00:00Z":           "error",
	} {
		s, err := history.ParseStart(text)
		start, after := s.Resolve(now)
		got := start + " after " + after.String()
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// One container of several: its events alone are written, all are read, and none twice.
func TestFilterByContainer(t *testing.T) {
	ctx := t.Context()
	m, live := simulated(t, feedsim.Spec{Shards: 2})
	want := 0
	count := func(e feedsim.Event) {
		if e.Container == "backups" {
			want++
		}
	}
	c := broker(t)
	for run := range 3 {
		must(t, live.Append(ctx, 100, count))
		o, r := over(t, c, m)
		o.Feed.Filter = envelope.Filter{Containers: []string{"backups"}}
		before := want
		must(t, runOnce(t, o))
		if r.Read != 100 || r.Emitted+r.Filtered != 100 || want != before {
			t.Errorf("run %d: %+v", run, r.Commit)
		}
	}
	if data, _ := consume(t, c, promises()...); data != want || want == 0 || want == 300 {
		t.Errorf("%d records, want %d of 300", data, want)
	}
}

// A start that meets an unfinished transaction can't know the frontier yet. When it does, and the frontier says
// that all is delivered up to another end, the run has not done what its settings ask for.
func TestOtherEndBehindTransaction(t *testing.T) {
	c := broker(t)
	o, _ := options(t, c, realFeed)
	end := "2020-05-29T16:59:59Z"
	var err error
	o.Feed.End, err = history.ParseEnd(end)
	must(t, err)
	o.Records.Frozen = map[string]string{"BRIDGE_END_TIME": end}
	must(t, runOnce(t, o))

	cl, err := kgo.NewClient(
		append(o.Kafka.Client, kgo.TransactionalID("other"), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	must(t, err)
	defer cl.Close()
	must(t, cl.BeginTransaction())
	must(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: o.offsetsTopic(), Key: []byte("unfinished")}).FirstErr())
	o.Records.Frozen = map[string]string{"BRIDGE_END_TIME": "2020-05-29T18:00:00Z"}
	h := &held{
		Handler: slog.DiscardHandler, at: "leases assigned", reached: make(chan struct{}), release: make(chan struct{}),
	}
	o.Log, o.Once = slog.New(h), false
	ended := make(chan error, 1)
	go func() { ended <- New(o).Run(t.Context(), t.Context()) }()
	<-h.reached
	must(t, cl.EndTransaction(t.Context(), kgo.TryAbort))
	close(h.release)
	var settings *plain.SettingsError
	if err := <-ended; !errors.As(err, &settings) || !strings.Contains(err.Error(), "BRIDGE_END_TIME") {
		t.Errorf("it ended with %v", err)
	}
}
