package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/plain"
	"blobfeed/internal/testing/fakebroker"
	"blobfeed/verify/judge"
)

const written = "changes" // the topic that the bridge writes

// delivered sets the environment for a broker of its own, and lets the program deliver a feed to it.
func delivered(t *testing.T, feed string, settings ...string) *kgo.Client {
	t.Helper()
	address := deliveredTo(t, feed, nil, settings...)
	cl, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// deliveredTo does so with a broker of some kind, and returns its address.
func deliveredTo(t *testing.T, feed string, broker []kfake.Opt, settings ...string) string {
	t.Helper()
	cluster := fakebroker.New(t, broker...)
	for _, s := range append([]string{
		"KAFKA_BROKERS=" + cluster.ListenAddrs()[0], "SOURCE_URL=file://" + abs(t, feed), "TOPIC=" + written,
		"TOPIC_PARTITIONS=3",
		"TOPIC_REPLICATION=1", "EVENTS=all", "OFFSETS_LEASES=4", "COMMIT_INTERVAL=100ms", "LOG_LEVEL=error",
	}, settings...) {
		name, value, _ := strings.Cut(s, "=")
		setenv(t, "BRIDGE_"+name, value)
	}
	if code, _, stderr := call(t, "run", "--once"); code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	return cluster.ListenAddrs()[0]
}

// produce writes records to a topic, which it creates if it has to.
func produce(t *testing.T, cl *kgo.Client, topic string, rs []*kgo.Record) {
	t.Helper()
	_, _ = kadm.NewClient(cl).CreateTopic(t.Context(), 3, 1, nil, topic) // produce says if it is not there
	for i := range rs {
		r := *rs[i]
		r.Topic = topic
		if err := cl.ProduceSync(t.Context(), &r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// status returns what the JSON report says of each check.
func statusFrom(t *testing.T, stdout string) (r judge.Report, of map[string]string) {
	t.Helper()
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	of = map[string]string{}
	for _, c := range r.Checks {
		of[c.Name] = c.Status
	}
	return r, of
}

// What the bridge delivers of the real feed holds, and what is missing or doubled on a broker is found and
// named. All other faults are in TestVerifyIsRight.
func TestVerify(t *testing.T) {
	t.Parallel()
	cl := delivered(t, "../../testdata/real-2020")
	code, stdout, stderr := call(t, "verify", "--feed")
	for _, want := range []string{
		"topic changes: 717 records and 30 markers on 3 partitions\n",
		"feed: 717 events, 717 for the topic, 717 of them must be in it, by the cursors in blobfeed.offsets\n",
		"holds        unique     no event comes twice (717 checked)\n",
		"not applicable: ", "sequence (", "holds        replay ",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not said", want)
		}
	}
	if code != exitOK || strings.Contains(stdout, "BROKEN") {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}

	rs := readBy(t, cl.Opts(), written)
	data := func(r *kgo.Record) bool { return r.Key != nil }
	first := slices.IndexFunc(rs, data)
	for name, c := range map[string]struct {
		fault  func(rs []*kgo.Record) []*kgo.Record
		broken string
		says   string
	}{
		"nothing": {func(rs []*kgo.Record) []*kgo.Record { return rs }, "", ""},
		"removed": {
			func(rs []*kgo.Record) []*kgo.Record { return slices.Delete(rs, first, first+1) }, "replay", "1 of 7",
		},
	} {
		t.Run(name, func(t *testing.T) {
			topic := strings.ReplaceAll(name, " ", "-")
			produce(t, cl, topic, c.fault(slices.Clone(rs)))
			code, stdout, stderr := call(t, "verify", "--feed", "--topic", topic, "--output", "json")
			_, of := statusFrom(t, stdout)
			want := exitOK
			for _, check := range strings.Fields(c.broken) {
				want = exitBroken
				if of[check] != judge.Broken || !strings.Contains(stderr, check) {
					t.Errorf("%s is %s", check, of[check])
				}
			}
			_, text, _ := call(t, "verify", "--feed", "--topic", topic)
			if code != want || !strings.Contains(text, c.says) {
				t.Errorf("exit code %d, want %d and %q: %s%s", code, want, c.says, text, stderr)
			}
		})
	}
	t.Run("doubled in place", func(t *testing.T) {
		produce(t, cl, written, rs[first:first+1])
		code, stdout, stderr := call(t, "verify")
		if code != exitBroken || !strings.Contains(stdout, "is repeated; first on partition") ||
			!strings.Contains(stderr, "unique") {
			t.Errorf("exit code %d: %s%s", code, stdout, stderr)
		}
	})
}

// A topic is not judged for a bridge that never wrote it: only a copy, which is named, has no state.
func TestVerifyOfAnotherBridge(t *testing.T) {
	t.Parallel()
	cl := delivered(t, "../../testdata/real-2020")
	produce(t, cl, "copy", readBy(t, cl.Opts(), written))
	for _, tc := range []struct {
		name, args string
		code       int
		says       string
	}{
		{"never", "verify", exitSettings, "it holds records. Set BRIDGE_NAME=blobfeed\n"},
		{"never", "verify --feed --topic changes", exitSettings, "Set BRIDGE_NAME=blobfeed\n"},
		{"blobfeed", "verify --topic copy", exitOK, ""},
		{"never", "verify --topic copy", exitOK, ""},
		{"never", "status", exitFailed, neverRan},
		{"never", "reset --yes", exitFailed, "no bridge of the name never has run"},
		{"never", "seek --to earliest --yes", exitFailed, "no bridge of the name never has run"},
		{"never", "scan", exitFailed, neverRan}, {"never", "dump --state", exitFailed, neverRan},
	} {
		setenv(t, "BRIDGE_NAME", tc.name)
		code, stdout, stderr := call(t, strings.Fields(tc.args)...)
		if code != tc.code || !strings.Contains(stderr, tc.says) {
			t.Errorf("%s %s: exit code %d: %s%s", tc.name, tc.args, code, stdout, stderr)
		}
	}
	setenv(t, "BRIDGE_NAME", "other")
	setenv(t, "BRIDGE_TOPIC", "of.{container}")
	setenv(t, "BRIDGE_RESOLVED_TO", "topic")
	setenv(t, "BRIDGE_KEY_FORMAT", "string")
	if code, _, stderr := call(t, "run", "--once"); code != exitOK {
		t.Fatal(stderr)
	}
	others, err := kadm.NewClient(cl).ListTopics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	topic := ""
	for _, name := range others.Names() {
		if strings.HasPrefix(name, "of.") && !plain.IsMarkerTopic(name) {
			topic = name
		}
	}
	produce(t, cl, "other.dlq", readBy(t, cl.Opts(), written)[:1])
	for _, name := range []string{"BRIDGE_TOPIC", "BRIDGE_RESOLVED_TO", "BRIDGE_KEY_FORMAT"} {
		setenv(t, name, "")
	}
	setenv(t, "BRIDGE_TOPIC", written)
	setenv(t, "BRIDGE_NAME", "blobfeed")
	for name, says := range map[string]string{
		topic: "it holds records. Set BRIDGE_NAME=other, BRIDGE_KEY_FORMAT=string, BRIDGE_RESOLVED_TO=topic, " +
			"BRIDGE_TOPIC=of.{container}\n",
		topic + ".resolved": "it holds markers, which are verified with the records. Set BRIDGE_NAME=other",
		"other.dlq":         "it holds dead letters, which are verified with the records. Set BRIDGE_NAME=other",
	} {
		code, stdout, stderr := call(t, "verify", "--feed", "--topic", name)
		if code != exitSettings || !strings.Contains(stderr, "Bridge other, which reads feed ") ||
			!strings.Contains(stderr, says) {
			t.Errorf("%s: exit code %d: %s%s", name, code, stdout, stderr)
		}
	}
	setenv(t, "BRIDGE_NAME", "never")
	setenv(t, "BRIDGE_TOPIC", "copy")
	if code, _, stderr := call(t, "verify"); code != exitSettings || !strings.Contains(stderr,
		"no bridge of the name never has stored anything about topic copy") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

const neverRan = "there is no topic never.offsets: no bridge of this name has run on these brokers"

// What can't be checked is no success: exit code 1, or 2 where the settings are to blame.
func TestVerifyUnchecked(t *testing.T) {
	t.Parallel()
	cl := delivered(t, "../../testdata/real-2020")
	produce(t, cl, "empty", nil)
	rs := readBy(t, cl.Opts(), written)
	produce(t, cl, "no-markers", slices.DeleteFunc(slices.Clone(rs), func(r *kgo.Record) bool { return r.Key == nil }))
	produce(t, cl, "markers", slices.DeleteFunc(slices.Clone(rs), func(r *kgo.Record) bool { return r.Key != nil }))
	for args, c := range map[string]struct {
		setting string
		code    int
		says    string
	}{
		"verify --topic empty":                         {"", exitFailed, "topic empty is empty"},
		"verify --topic markers":                       {"", exitFailed, "has no records: nothing is checked"},
		"verify --until-resolved 2030-01-01T00:00:00Z": {"", exitFailed, "has no marker at or above"},
		"verify --until-resolved yesterday":            {"", exitUsage, "yesterday"},
		"verify --feed --bounded":                      {"", exitUsage, "--bounded"},
		"verify --account":                             {"", exitSettings, "names a directory, which has no blobs"},
		"verify --output xml":                          {"", exitUsage, "xml"},
		"verify now":                                   {"", exitUsage, `unexpected argument "now"`},

		"verify --feed --wait 1s": {"", exitUsage, "--wait needs --account"},

		"verify --account --until-resolved 2020-05-28T00:00:00Z": {"", exitUsage, "excludes --until-resolved"},

		"verify --topic blobfeed.offsets":    {"", exitUsage, "want a topic of records, such as changes"},
		"verify --topic blobfeed.dlq --feed": {"", exitUsage, "dead letters are verified with their topic"},

		"verify --topic nosuch": {"", exitFailed, "opening topic nosuch: it does not exist: check "},

		"verify --topic no-markers": {"", exitFailed, "resolved: there is nothing to check"},

		"verify --topic no-markers --feed": {"BRIDGE_RESOLVED_TO=off", exitFailed,
			"replay: it is unknown which events must be in the topic"},

		"verify --topic no-markers --until-resolved 2020-05-28T00:00:00Z": {"", exitFailed,
			"has no marker at or above"},

		"verify --until-resolved 2020-05-28T00:00:00Z": {"BRIDGE_RESOLVED_TO=off", exitUsage, "has no markers"},

		"verify --topic no-markers --feed ": {"BRIDGE_START=latest", exitFailed, "BRIDGE_START=latest"},

		"verify --feed": {"BRIDGE_EVENTS=state", exitSettings, "BRIDGE_EVENTS=state, but changes was written with all"},
	} {
		t.Run(args, func(t *testing.T) {
			if name, value, ok := strings.Cut(c.setting, "="); ok {
				setenv(t, name, value)
			}
			code, stdout, stderr := call(t, strings.Fields(args)...)
			if code != c.code || !strings.Contains(stderr, c.says) {
				t.Errorf("exit code %d, want %d and %q: %s%s", code, c.code, c.says, stdout, stderr)
			}
		})
	}
}

// Up to a marker, and with what the settings select, the same holds; and --bounded says what it leaves out.
func TestVerifySelection(t *testing.T) {
	t.Parallel()
	delivered(t, "../../testdata/real-2020", "EVENTS=state", "START=2020-05-27T15:44:30Z", "EVENT_TYPES=!BlobDeleted",
		"KEY_FORMAT=string")
	for _, args := range []string{
		"verify --feed --output json", "verify --feed --until-resolved 2020-05-28T00:00:00Z --output json",
		"verify --bounded --output json",
	} {
		code, stdout, stderr := call(t, strings.Fields(args)...)
		r, of := statusFrom(t, stdout)
		if code != exitOK || r.Records == 0 || of["partition"] != judge.Holds || of["order"] != judge.Holds ||
			of["resolved"] != judge.Holds {
			t.Errorf("%s: exit code %d: %s%s", args, code, stdout, stderr)
		}
		if f := r.Feed; f != nil &&
			(f.Read != 717 || f.Given >= f.Read || f.Required == 0 || f.Given < r.Records ||
				of["replay"] != judge.Holds) {
			t.Errorf("%s: %+v of %d records", args, f, r.Records)
		}
		if strings.Contains(args, "bounded") && of["unique"] != judge.NotChecked {
			t.Errorf("%s: %v", args, of)
		}
	}
}

// Without headers the values say what they can, and the report what they can't; so with the other modes of delivery.
func TestVerifyModes(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]map[string]string{
		"HEADERS=none": {
			"unique": judge.Holds, "sequence": judge.Holds, "order": judge.NotChecked,
			"resolved": judge.Holds, "replay": judge.Holds,
		},
		"DELIVERY=at_least_once": {
			"unique": judge.NotChecked, "order": judge.Holds,
			"replay": judge.Holds,
		},
		"DELETES=both":    {"unique": judge.Holds, "replay": judge.Holds},
		"RESOLVED_TO=off": {"unique": judge.Holds, "resolved": judge.NotChecked, "replay": judge.Holds},
	} {
		t.Run(setting, func(t *testing.T) {
			delivered(t, "../../testdata/real-2020", setting)
			code, stdout, stderr := call(t, "verify", "--feed", "--output", "json")
			r, of := statusFrom(t, stdout)
			if f := r.Feed; f.Required != f.Given { // events, also if some have two records
				t.Errorf("%+v", f)
			}
			for name, status := range want {
				if of[name] != status {
					t.Errorf("%s is %s, want %s", name, of[name], status)
				}
			}
			if code != exitOK {
				t.Errorf("exit code %d: %s%s", code, stdout, stderr)
			}
		})
	}
}

// A long verification says how far it is, also if nobody watches.
func TestVerifyShowsProgress(t *testing.T) {
	t.Parallel()
	var o judge.Options
	shown, ended := make(chan int64), false
	stop := countReads(t.Context(), &o, time.Millisecond, func(events, records int64) { shown <- events + records },
		func() { ended = true })
	o.Reads.Events.Add(3)
	if n := <-shown; n != 3 {
		t.Errorf("%d are shown", n)
	}
	o.Reads.Records.Add(4)
	if n := <-shown; n != 7 {
		t.Errorf("%d are shown", n)
	}
	if stop(); !ended {
		t.Error("the display runs after stop")
	}
}
