package bridge

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"blobfeed/envelope"
	"blobfeed/offsets"
	"blobfeed/verify"
)

// A scan of a part of the account lists that part, and its sweep deletes nothing else.
func TestSweepOfAPart(t *testing.T) {
	t.Parallel()
	w, c, o := afterScan(t, 3, 40, func(*Options) {})
	w.unfed(20)
	ask(t, o, offsets.Request{ID: "sweep", Time: time.Now(), Sweep: true, Container: "c1", Prefix: "dir/ü3"})
	s := awaitState(t, o, "the sweep is done", isDone("sweep"))
	if scan := s.Frontier.Scan; scan.Rows != 10 || scan.Containers != 1 { // ü30 to ü39
		t.Errorf("%d rows of %d containers", scan.Rows, scan.Containers)
	}
	want, got := []string{`["c1/dir/ü3"]`}, []string(nil)
	enc, err := o.Encoder(t.Context(), topic)
	must(t, err)
	consume(t, c, noted(func(r verify.Record) {
		if string(r.Header("scan")) == "sweep" && enc.Deletes(r.Value) {
			got = append(got, string(r.Key))
		}
	}))
	if !slices.Equal(got, want) {
		t.Errorf("deleted %q, want %q", got, want)
	}
}

// A sweep of topics that do not say which keys live is left out, with an error that says why. The rows are written.
func TestSweepRejected(t *testing.T) {
	t.Parallel()
	for why, prepare := range map[string]func(t *testing.T, c *kfake.Cluster, o *Options){
		"other accounts write to these topics": func(_ *testing.T, _ *kfake.Cluster, o *Options) { o.Shared = true },
		"do not say which keys are deleted": func(_ *testing.T, _ *kfake.Cluster, o *Options) {
			o.Encoder = encoder(envelope.Options{Envelope: envelope.KeyOnly, Events: envelope.EventsState})
		},
		"does not keep every key": func(t *testing.T, c *kfake.Cluster, _ *Options) {
			hour := "3600000"
			createTopic(t, c, topic, partitions, map[string]*string{"retention.ms": &hour})
		},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2, 40)
			c := broker(t)
			o := w.options(c)
			prepare(t, c, &o)
			live(t, o)
			awaitDrained(t, o, w)
			w.unfed(20)
			ask(t, o, offsets.Request{ID: "sweep", Time: time.Now(), Sweep: true})
			w.recorder.awaitFailure(t, why)
			s := awaitState(t, o, "the scan is done", isDone("sweep"))
			if s.Frontier.Scan.Rows != 40 || s.Frontier.Scan.Deleted != 0 {
				t.Errorf("%+v", s.Frontier.Scan)
			}
		})
	}
}

// Keys from before a topic got more partitions are where no record of theirs would go today. Their deletions go there,
// and the account is asked: a blob that exists has its row elsewhere.
func TestSweepBehindNewPartitions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, 40)
	c := broker(t)
	o := w.options(c)
	o.InitialScan = ScanYes
	live(t, o)
	awaitState(t, o, "the first scan is done", func(s *offsets.State) bool {
		return scanOf(s) != nil && scanOf(s).Done
	})
	_, err := admin(t, c).CreatePartitions(t.Context(), 3, topic)
	must(t, err)
	w.awaitPartitions(o, partitions+3, func(*offsets.Frontier) {})
	w.unfed(20)
	ask(t, o, offsets.Request{ID: "sweep", Time: time.Now(), Sweep: true})
	s := awaitState(t, o, "the sweep is done", isDone("sweep"))
	if scan := s.Frontier.Scan; scan.Deleted != 40 || scan.Rows != 40 {
		t.Errorf("%d rows, %d deletions", scan.Rows, scan.Deleted)
	}
	enc, err := o.Encoder(t.Context(), topic)
	must(t, err)
	was := map[string]int32{}
	consume(t, c, noted(func(r verify.Record) {
		key := string(r.Key)
		switch {
		case string(r.Header("scan")) != "sweep":
			was[key] = r.Partition
		case enc.Deletes(r.Value) && was[key] != r.Partition:
			t.Errorf("%s is in partition %d, and its deletion in %d", key, was[key], r.Partition)
		}
	}))
}

// A scan that lost history begins in place of another one has a sweep of its own: the other one has read partitions
// before it.
func TestSweepOfAnotherScan(t *testing.T) {
	o, _ := options(t, broker(t), t.TempDir())
	o.Shared = true // it is rejected, so none is begun
	ended, done := false, make(chan struct{})
	close(done)
	before := &sweep{scan: "before", end: func() { ended = true }, batch: make(chan batch), done: done}
	l := &listing{
		h:     &hold{opts: &o, shared: &shared{opts: &o}, findings: &findings{sweep: before}},
		basis: &basis{frontier: &offsets.Frontier{}}, scan: &offsets.Scan{ID: "after"},
	}
	finished, err := l.sweep(t.Context())
	if err != nil || !finished || !ended || l.h.findings.sweep != nil {
		t.Errorf("finished %t, the other one ended %t, %v", finished, ended, err)
	}
}
