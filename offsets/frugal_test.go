package offsets

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/testing/fakebroker"
)

// A frugal view fetches less often, and hears of a record as soon.
func TestFrugalView(t *testing.T) {
	for _, frugal := range []bool{false, true} {
		c := fakebroker.New(t)
		cfg, ctx := configOf(t, c)
		waits := make(chan time.Duration, 1000)
		c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			waits <- time.Duration(req.(*kmsg.FetchRequest).MaxWaitMillis) * time.Millisecond
			return nil, nil, false
		})
		v := NewView(stateTopic, 4)
		v.Frugal = frugal
		viewing, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- v.Run(viewing, cfg.Client...) }()
		wait := <-waits
		if want := map[bool]time.Duration{false: 500 * time.Millisecond, true: 5 * time.Second}[frugal]; wait != want {
			t.Errorf("frugal %t: a fetch waits for %s, want %s", frugal, wait, want)
		}
		cl, err := kgo.NewClient(append(cfg.Client, kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		r := &kgo.Record{Topic: stateTopic, Partition: 1, Key: []byte(keyOwner), Value: []byte(`{"version":1,"owner":"x"}`)}
		if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		cl.Close()
		if _, err := v.Await(ctx, func(s *State) bool { return s.Owners[1] == "x" }); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("frugal %t: the view has a record after %s", frugal, took)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// Three heartbeats of a frugal member fit into its session, so that one can be lost.
func TestFrugalHeartbeat(t *testing.T) {
	for session, want := range map[time.Duration][2]time.Duration{
		10 * time.Second: {300 * time.Millisecond, 2500 * time.Millisecond},
		time.Second:      {250 * time.Millisecond, 250 * time.Millisecond},
	} {
		usual, frugal := (&Config{}).heartbeat(session), (&Config{Frugal: true}).heartbeat(session)
		if usual != want[0] || frugal != want[1] {
			t.Errorf("session %s: %s and %s, want %s", session, usual, frugal, want)
		}
	}
}
