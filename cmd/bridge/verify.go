package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"blobfeed/envelope"
	"blobfeed/internal/config"
	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/internal/progress"
	"blobfeed/verify/judge"
)

const verifyHelp = `
Reads the topic, or all topics of a template, read_committed from the first record to the current end, and reports which
of the bridge's promises hold. Use the settings that the topic was written with. Without --feed and --account,
BRIDGE_SOURCE_URL is not needed. The topic of a replay is judged by what the replay recorded.
--follow runs beside the bridge: it verifies as the topic grows, and serves /status, /metrics and the probes at
BRIDGE_HTTP_ADDR until a promise is broken.
Exit codes: 0 all promises that apply hold, 4 a promise is broken, 1 a promise could not be checked (also: the topic is
empty), 2 usage or settings.
`

func verifyVerb(ctx context.Context, env config.Env, args []string, stdout, stderr io.Writer) error {
	usage := "[--topic T] [--feed [--follow]] [--account [--wait 5m]] [--until-resolved TIME] [--bounded] " +
		"[--output text|json]"
	fs := flags(env, "verify", usage, stdout, func(w io.Writer) { fmt.Fprint(w, verifyHelp) })
	var o judge.Options
	fs.StringVar(&o.Topic, "topic", "",
		"topic to check (default: BRIDGE_TOPIC; of a template, each topic that the bridge has written to)")
	fs.BoolVar(&o.ReadFeed, "feed", false, "compare the topic with the feed: nothing is lost, changed or made up")
	following := fs.Bool("follow", false,
		"with --feed: continue as the topic grows, segment by segment, and end with 4 at the first broken promise")
	fs.BoolVar(&o.ReadAccount, "account", false,
		"compare the topic with the blobs that the account has now, and print the keys that differ")
	fs.DurationVar(&o.Wait, "wait", 5*time.Minute,
		"with --account: maximum wait for the feed to explain keys that differ")
	until := fs.String("until-resolved", "",
		"stop at the first marker at or above this time (or text of an \"updated\"), which every partition must have")
	fs.BoolVar(&o.Bounded, "bounded", false,
		"run only checks whose memory does not grow with events or keys: for very long topics")
	asJSON, err := parseOutput(fs, args, "one document per topic")
	if err != nil {
		return err
	}
	if o.Bounded && o.ReadFeed {
		return &usageError{errors.New("--feed needs about 40 bytes per event: it excludes --bounded")}
	}
	waits := false
	fs.Visit(func(f *flag.Flag) { waits = waits || f.Name == "wait" })
	if waits && !o.ReadAccount {
		return &usageError{errors.New("--wait needs --account")}
	}
	if o.ReadAccount && *until != "" {
		return &usageError{errors.New("--account compares the end of the topic: it excludes --until-resolved")}
	}
	if *following && (!o.ReadFeed || o.ReadAccount || *until != "") {
		return &usageError{errors.New("--follow needs --feed, and excludes --account and --until-resolved")}
	}
	if *until != "" {
		if o.Until, err = history.ParseTime(*until); err != nil {
			return &usageError{fmt.Errorf("--until-resolved: %w", err)}
		}
	}
	c, err := judged(env, &o)
	if err != nil {
		return err
	}
	if _, state := plain.BridgeOfState(o.Topic); state || o.Topic == plain.DeadLetterTopic(c.Name) {
		return &usageError{fmt.Errorf("--topic %s: want a topic of records, such as %s; bridge dump --state prints a "+
			"state, and dead letters are verified with their topic", o.Topic, c.Topic)}
	}
	if *until != "" && o.Records.Markers == envelope.MarkersOff {
		return &usageError{fmt.Errorf("--until-resolved: the topic has no markers (%s_RESOLVED_TO=%s)",
			config.Prefix, o.Records.Markers)}
	}
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if *following {
		log, _ := progress.ForMany(c, stderr) // without a live line
		return follow(ctx, c, o, log, stdout, asJSON)
	}
	stop := showReads(ctx, &o, stderr)
	reports, err := judge.Run(ctx, o)
	stop()
	if err != nil {
		return err
	}
	for _, r := range reports {
		if err := printReport(stdout, r, asJSON); err != nil {
			return err
		}
	}
	return judge.Verdict(reports)
}

func printReport(stdout io.Writer, r *judge.Report, asJSON bool) (err error) {
	if !asJSON {
		_, err = io.WriteString(stdout, r.Text())
		return err
	}
	e := json.NewEncoder(stdout)
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// showReads shows how much is read, until stop is called: live on a terminal, else now and then.
func showReads(ctx context.Context, o *judge.Options, stderr io.Writer) (stop func()) {
	f, is := stderr.(*os.File)
	live := is && progress.Terminal(f)
	every, line := quietReads, "%s\n"
	if live {
		every, line = time.Second, "\r\x1b[K%s"
	}
	return countReads(ctx, o, every, func(events, records int64) {
		fmt.Fprintf(stderr, line, fmt.Sprintf("read %s of the feed, %s of the topic",
			plain.Count(events, "event"), plain.Count(records, "record")))
	}, func() {
		if live {
			fmt.Fprint(f, "\r\x1b[K")
		}
	})
}

// quietReads is how often a verification that nobody watches says how far it is.
const quietReads = 30 * time.Second

// countReads calls show after each period in which something was read, until stop is called, and then end.
func countReads(
	ctx context.Context, o *judge.Options, every time.Duration, show func(events, records int64), end func(),
) (stop func()) {
	o.Reads = new(judge.Reads)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer end()
		t := time.NewTicker(every)
		defer t.Stop()
		for last := int64(0); ; {
			select {
			case <-t.C:
				events, records := o.Reads.Events.Load(), o.Reads.Records.Load()
				if events+records > last {
					last = events + records
					show(events, records)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// judged reads the settings into o.
func judged(env config.Env, o *judge.Options) (*config.Config, error) {
	read := env.LoadKafka
	if o.ReadFeed || o.ReadAccount {
		read = func() (*config.Config, error) { return env.Load(true) }
	}
	c, err := load(read())
	if err != nil {
		return nil, err
	}
	if err := o.Use(c); err != nil {
		return nil, &settingsError{err}
	}
	return c, nil
}

// follower shows what bridge verify --follow has verified, on its output and over HTTP.
type follower struct {
	log    *slog.Logger
	stdout io.Writer
	asJSON bool

	registry                    *prometheus.Registry
	through                     *prometheus.GaugeVec
	records, violations, failed *prometheus.CounterVec

	mu     sync.Mutex
	topics map[string]*followedTopic
}

// followedTopic is what /status says of a topic.
type followedTopic struct {
	Topic           string    `json:"topic"`
	VerifiedThrough time.Time `json:"verified_through"`
	Records         int64     `json:"records"`
	Broken          []string  `json:"broken"` // checks
}

func newFollower(log *slog.Logger, stdout io.Writer, asJSON bool) *follower {
	f := &follower{log: log, stdout: stdout, asJSON: asJSON, registry: prometheus.NewRegistry(),
		topics: map[string]*followedTopic{}}
	f.through = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "bridge_verify_verified_through_seconds",
		Help: "Time of the marker up to which the topic is verified, in seconds since 1970."}, []string{"topic"})
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		f.registry.MustRegister(c)
		return c
	}
	f.registry.MustRegister(f.through)
	f.records = counter("bridge_verify_records_total", "Verified records, those that are compared again, too.", "topic")
	f.violations = counter("bridge_verify_violations_total", "Broken promises.", "topic", "check")
	f.failed = counter("bridge_verify_errors_total", "Rounds that failed and are retried.")
	f.failed.WithLabelValues()
	return f
}

// verified takes the reports of a round.
func (f *follower) verified(reports []*judge.Report, through time.Time, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range reports {
		t := f.topics[r.Topic]
		if t == nil {
			t = &followedTopic{Topic: r.Topic, Broken: []string{}}
			f.topics[r.Topic] = t
		}
		if first { // after a seek, too
			t.Records = 0
		}
		t.Records += r.Records
		f.records.WithLabelValues(r.Topic).Add(float64(r.Records))
		for _, check := range r.Broken() {
			t.Broken = append(t.Broken, check)
			f.violations.WithLabelValues(r.Topic, check).Inc()
		}
		if len(t.Broken) > 0 {
			f.show(r)
			continue
		}
		t.VerifiedThrough = through.UTC()
		f.through.WithLabelValues(r.Topic).Set(float64(through.Unix()))
		f.log.Info("verified", "topic", r.Topic, "through", t.VerifiedThrough.Format(time.RFC3339Nano),
			"records", t.Records)
	}
}

func (f *follower) show(r *judge.Report) {
	if err := printReport(f.stdout, r, f.asJSON); err != nil {
		f.log.Error("printing the report failed", "error", err)
	}
}

func (f *follower) retries(err error) {
	f.failed.WithLabelValues().Inc()
	f.log.Warn("verifying failed, and is retried", "error", err)
}

// handler answers the probes, /status and /metrics.
func (f *follower) handler() http.Handler {
	mux := http.NewServeMux()
	ok := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }
	mux.HandleFunc("GET /healthz", ok)
	mux.HandleFunc("GET /readyz", ok)
	mux.Handle("GET /metrics", promhttp.HandlerFor(f.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		all := []followedTopic{}
		for _, t := range f.topics {
			all = append(all, *t)
		}
		f.mu.Unlock()
		slices.SortFunc(all, func(a, b followedTopic) int { return strings.Compare(a.Topic, b.Topic) })
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"topics": all}) // fails if the client is gone
	})
	return mux
}

// follow verifies as the topics grow, until a promise is broken.
func follow(
	ctx context.Context, c *config.Config, o judge.Options, log *slog.Logger, stdout io.Writer, asJSON bool,
) error {
	f := newFollower(log, stdout, asJSON)
	stop, err := serve(ctx, c, true, guard(c, log).Wrap(f.handler()), log)
	if err != nil {
		return err
	}
	defer stop()
	stopped := countReads(ctx, &o, quietReads, func(events, records int64) {
		log.Info("verifying", "events", events, "records", records)
	}, func() {})
	defer stopped()
	err = judge.Follow(ctx, o, judge.Followed{Verified: f.verified, Failed: f.retries})
	if ctx.Err() != nil {
		return nil // stopped by a signal
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, "verified: everything up to BRIDGE_END_TIME")
	return err
}
