//go:build unix

package soak

import (
	"context"
	"fmt"
	"strings"
	"time"

	"blobfeed/integration/chaos"
)

// Report is what a run found.
type Report struct {
	Took      time.Duration
	Events    int64
	Segments  int
	Markers   int
	Summary   chaos.Summary
	Block     Span
	Recovered time.Duration

	Half, Most, Longest time.Duration // delays: of half the events, of 99 of 100, of all

	First, Last float64 // bytes
	Highest     Sample
	Memory      [5]float64 // medians of fifths
	Figures     []Figure
	Alerts      []Alert

	Failures []string // nothing may be here
}

// Figure is an expression's medians and highest value.
type Figure struct {
	Name    string
	Highest Sample
	Fifths  [5]float64
}

// figures are asked of Prometheus. The names are of the report.
var figures = []struct{ name, expr string }{
	{"goroutines", "go_goroutines"},
	{"heap in use, MiB", "go_memstats_heap_inuse_bytes / 1048576"},
	{"heap released or idle, MiB", "go_memstats_heap_idle_bytes / 1048576"},
	{"open files", "process_open_fds"},
	{"lag of the bridge, s", `max(blobfeed_lag_seconds{part="bridge"})`},
	{"lag of the feed, s", `max(blobfeed_lag_seconds{part="azure"})`},
	{"backlog, s", "max(blobfeed_backlog_seconds)"},
	{"leases stuck", `blobfeed_unready{reason="stuck"}`},
	{"no member", `blobfeed_unready{reason="no_member"}`},
	{"errors of Kafka and network per second, of 5 minutes",
		`sum(rate(blobfeed_errors_total{class=~"kafka|network"}[5m]))`},
	{"errors of all classes", "sum(blobfeed_errors_total)"},
	{"cores in use, of a minute", "rate(process_cpu_seconds_total[1m])"},
}

func (r *run) report(ctx context.Context, prom *Prometheus, failures []string) (*Report, error) {
	p := &Report{Took: r.ended.Sub(r.began), Events: r.feed.Summary().Events, Segments: r.feed.Summary().Finalized,
		Markers: r.judge.Markers(),
		Summary: r.judge.Summary(), Block: r.block, Recovered: r.recovered, Failures: failures}
	p.Half, p.Most, p.Longest = r.judge.Delays()
	p.First, p.Last = r.memory[0].Value, r.memory[len(r.memory)-1].Value
	p.Highest, p.Memory = highest(r.memory), Fifths(r.memory)
	fail := func(format string, args ...any) { p.Failures = append(p.Failures, fmt.Sprintf(format, args...)) }
	if !p.Summary.OK() {
		fail("a check of the summary")
	}
	if r.recovered == 0 {
		fail("what waited in the block was not there at the end")
	}
	if p.Highest.Value >= r.Limit {
		fail("the process had %.1f MiB, above its limit of %.0f", p.Highest.Value/mib, r.Limit/mib)
	}
	long := r.Duration >= time.Hour // before, it has not warmed up
	if long && !Flat(p.Memory, 8*mib) {
		fail("memory grew")
	}
	for _, f := range figures {
		series, err := prom.queryRange(ctx, f.expr, r.began, r.ended)
		if err != nil {
			return nil, err
		}
		if len(series) != 1 {
			fail("Prometheus has %d series of %s", len(series), f.expr)
			continue
		}
		own := Figure{f.name, highest(series[0].Samples), Fifths(series[0].Samples)}
		if f.name == "goroutines" && !Flat(own.Fifths, 10) {
			fail("goroutines grew")
		}
		p.Figures = append(p.Figures, own)
	}
	series, err := prom.queryRange(ctx, "ALERTS", r.began, r.ended)
	if err != nil {
		return nil, err
	}
	p.Alerts = alerts(series)
	p.Failures = append(p.Failures, Judge(p.Alerts, r.block, blocked)...)
	return p, nil
}

func (p *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d events, %d segments, %d markers, %s", p.Took.Round(time.Second), p.Events, p.Segments,
		p.Markers, p.Summary)
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
	fmt.Fprintf(&b, "from the feed to a reader: half within %s, 99%% within %s, all within %s\n", round(p.Half),
		round(p.Most), round(p.Longest))
	fmt.Fprintf(&b, "broker blocked %v (%s); what waited then was there %s after\n",
		p.Block, p.Block.To.Sub(p.Block.From).Round(time.Second), p.Recovered.Round(time.Second))
	fmt.Fprintf(&b, "resident memory, MiB: %.1f at first, %.1f at the end, %.1f at most, at %s; medians of fifths",
		p.First/mib, p.Last/mib, p.Highest.Value/mib, p.Highest.At.UTC().Format(time.TimeOnly))
	for _, m := range p.Memory {
		fmt.Fprintf(&b, " %.1f", m/mib)
	}
	b.WriteString("\n")
	for _, f := range p.Figures {
		fmt.Fprintf(&b, "%s: %.4g at most, at %s; medians of fifths %.4g\n", f.Name, f.Highest.Value,
			f.Highest.At.UTC().Format(time.TimeOnly), f.Fifths)
	}
	for _, a := range p.Alerts {
		fmt.Fprintf(&b, "%s: true %v, firing %v\n", a.Name, a.True, a.Firing)
	}
	for _, f := range p.Failures {
		fmt.Fprintf(&b, "FAILED: %s\n", f)
	}
	return b.String()
}
