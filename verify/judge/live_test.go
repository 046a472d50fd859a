package judge

import (
	"cmp"
	"io"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/bridge"
	"blobfeed/internal/change"
	"blobfeed/internal/config"
	"blobfeed/internal/history"
	"blobfeed/internal/progress"
	"blobfeed/internal/setup"
	simulated "blobfeed/internal/testing/feedsim/account"
	"blobfeed/offsets"
)

const written = "changes" // the topic that the bridge writes

// bySettings returns a verification of a topic with its feed, by the settings in the environment.
func bySettings(t *testing.T, topic string) *verification {
	t.Helper()
	o := Options{Topic: topic, ReadFeed: true}
	if err := o.Use(loaded(t)); err != nil {
		t.Fatal(err)
	}
	return newVerification(o)
}

func loaded(t *testing.T) *config.Config {
	t.Helper()
	c, err := config.Environ().Load(true)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// deliver lets a bridge with the settings in the environment deliver what the feed holds.
func deliver(t *testing.T) {
	t.Helper()
	deliverAs(t, "")
}

// scan lets it list an account first, and deliver the feed from its open segment on.
func scan(t *testing.T, how bridge.InitialScan, a *simulated.Account) {
	t.Helper()
	c := loaded(t)
	o, err := setup.Options(c, setup.Observe{})
	if err != nil {
		t.Fatal(err)
	}
	o.Once = true
	o.Feed.InitialScan, o.Feed.AccountURL, o.Feed.Inventory = how, "https://a/", &simulated.Store{Account: a}
	o.Pace.ScanRequests, o.Pace.ScanRound = 4, time.Second
	work(t, c, o)
}

// rescan asks for a scan with a sweep, and lets the bridge carry it out.
func rescan(t *testing.T, a *simulated.Account) {
	t.Helper()
	r, done, err := setup.State(loaded(t))
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	cl, err := kgo.NewClient(r.Client...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ask := offsets.Request{ID: offsets.ScanID(time.Now()), Time: time.Now(), Sweep: true}
	if err := offsets.Ask(t.Context(), cl, r.Topic, ask); err != nil {
		t.Fatal(err)
	}
	scan(t, bridge.ScanYes, a)
}

// deliverAs does so under another identity of the feed, unless that is "".
func deliverAs(t *testing.T, id string) {
	t.Helper()
	c := loaded(t)
	o, err := setup.Options(c, setup.Observe{})
	if err != nil {
		t.Fatal(err)
	}
	o.Feed.ID, o.Once = cmp.Or(id, o.Feed.ID), true
	work(t, c, o)
}

func work(t *testing.T, c *config.Config, o bridge.Options) {
	t.Helper()
	log, shown := progress.New(c, io.Discard)
	o.Log, o.Observer = log, bridge.Observers{shown}
	if err := bridge.New(o).Run(t.Context(), t.Context()); err != nil {
		t.Fatal(err)
	}
}

// seek moves the bridge.
func seek(t *testing.T, to string) {
	t.Helper()
	target, err := history.ParseTarget(to)
	if err != nil {
		t.Fatal(err)
	}
	c := loaded(t)
	r, done, err := setup.State(c)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	plan, err := change.Prepare(t.Context(), r, c, change.Seek(target, nil))
	if err == nil {
		err = plan.Apply(t.Context(), true) // by force: the bridge may never have run
	}
	if err != nil {
		t.Fatal(err)
	}
}

// again replays an interval into a topic.
func again(t *testing.T, from, to, topic string) {
	t.Helper()
	r := change.Replay{Live: loaded(t), From: from, To: to, Topic: topic}
	c, _, err := r.Prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o, err := setup.Options(c, setup.Observe{})
	if err != nil {
		t.Fatal(err)
	}
	work(t, c, o)
}

func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}
