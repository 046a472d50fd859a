//go:build unix

package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"blobfeed/integration/chaos"
	"blobfeed/integration/stack"
	"blobfeed/internal/plain"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/internal/testing/feedsim/blobsink"
)

// Options say what a run is.
type Options struct {
	Duration time.Duration
	Block    time.Duration // of the broker, in the middle
	Interval time.Duration // of segments
	Limit    float64       // bytes that the process may have
	Program  string        // path
	Dir      string        // for logs
	Rules    string        // path of the alerts
	Logf     func(string, ...any)
}

// Stack is what the stack of a run needs.
var Stack = stack.Options{Brokers: 1, Azurite: true}

const (
	endLimit  = 10 * time.Minute // for the rest: a finalized segment shows after a poll
	stopLimit = time.Minute
	sampling  = 5 * time.Second
)

type run struct {
	Options
	stack    *stack.Stack
	feed     *feedsim.Feed
	judge    *chaos.Judge
	instance *chaos.Instance
	env      []string

	began, ended time.Time
	block        Span
	recovered    time.Duration // from the block's end until all that waited then was there
	memory       []Sample      // of one goroutine at a time
}

// Run carries it out and judges what came of it. The error is of the run, not of the program: then nothing is known.
func Run(ctx context.Context, s *stack.Stack, o Options) (_ *Report, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &run{Options: o, stack: s}
	sink, err := blobsink.Connect(ctx, s.AzureConnectionString)
	if err != nil {
		return nil, err
	}
	if r.feed, err = newFeed(sink, o.Interval); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("soak-%d", time.Now().UnixNano())
	if r.judge, err = chaos.NewJudge(s.KafkaBrokers, name+".changes"); err != nil {
		return nil, err
	}
	defer r.judge.Close()
	if err := r.feed.Open(ctx); err != nil {
		return nil, err
	}
	address, err := r.start(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.instance.Kill()
	prom, err := startPrometheus(ctx, o.Dir, address, o.Rules)
	if err != nil {
		return nil, err
	}
	defer prom.close()

	r.began = time.Now()
	reading, endReading := context.WithCancel(ctx)
	feeding, endFeeding := context.WithCancel(ctx)
	var sides, fed sync.WaitGroup
	var feedErr error
	sides.Go(func() { r.read(reading) })
	fed.Go(func() {
		rng := rand.New(rand.NewPCG(uint64(r.began.UnixNano()), 1))
		feedErr = (&feeder{feed: r.feed, interval: o.Interval, rng: rng, expect: r.judge.Expect}).run(ctx, feeding)
	})
	err = r.watch(ctx)
	endFeeding()
	fed.Wait()
	var failures []string
	if err = errors.Join(err, feedErr); err == nil {
		failures = r.end(ctx)
	}
	endReading()
	sides.Wait()
	if err != nil {
		return nil, err
	}
	return r.report(ctx, prom, failures)
}

// start starts the program and returns where it serves HTTP, once it is ready.
func (r *run) start(ctx context.Context, name string) (address string, err error) {
	u := plain.ConnectionPart(r.stack.AzureConnectionString, "BlobEndpoint")
	if u == "" {
		return "", errors.New("the connection string has no BlobEndpoint")
	}
	if address, err = stack.FreeAddress(); err != nil {
		return "", err
	}
	r.env = []string{"BRIDGE_NAME=" + name, "BRIDGE_TOPIC=" + name + ".changes", "BRIDGE_EVENTS=all",
		"BRIDGE_KAFKA_BROKERS=" + r.stack.KafkaBrokers[0],
		"BRIDGE_SOURCE_URL=" + u, "BRIDGE_SOURCE_AUTH=shared_key", "BRIDGE_SOURCE_ACCOUNT=" + stack.AzuriteAccount,
		"BRIDGE_SOURCE_KEY=" + stack.AzuriteKey}
	if r.instance, err = chaos.Launch(r.Program, filepath.Join(r.Dir, "bridge.log"), []string{"run"},
		append([]string{"BRIDGE_HTTP_ADDR=" + address, fmt.Sprintf("GOMEMLIMIT=%.0f", r.Limit)},
			r.env...)...); err != nil {
		return "", err
	}
	r.instance.Name = name
	return address, chaos.Await(ctx, time.Minute, "the program is ready", func(ctx context.Context) (bool, error) {
		code, err := status(ctx, "http://"+address+"/readyz")
		return code == http.StatusOK, err
	})
}

// read retries when the broker does not answer.
func (r *run) read(ctx context.Context) {
	for ctx.Err() == nil {
		if err := r.judge.Read(ctx); err != nil {
			r.Logf("reading the topic, again: %v", err)
		}
	}
}

// watch takes samples until the duration is over, and blocks the broker in the middle.
func (r *run) watch(ctx context.Context) error {
	const (
		before = iota
		during
		catching
		after
	)
	state, logged := before, time.Time{}
	t := time.NewTicker(sampling)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
		now := time.Now()
		passed := now.Sub(r.began)
		if !r.instance.Running() {
			return errors.Join(errors.New("the program has ended by itself"), r.instance.Wait(0))
		}
		rss, err := stack.ResidentOf(r.instance.PID())
		if err != nil {
			return err
		}
		r.memory = append(r.memory, Sample{now, rss})
		switch {
		case state == before && passed >= (r.Duration-r.Block)/2:
			state, r.block.From = during, time.Now()
			r.Logf("%s: the broker is blocked", passed.Round(time.Second))
			if err := r.stack.PauseBroker(0); err != nil {
				return err
			}
		case state == during && now.Sub(r.block.From) >= r.Block:
			if err := r.stack.ResumeBroker(0); err != nil {
				return err
			}
			state, r.block.To = catching, time.Now()
			r.Logf("%s: the broker answers; %d events wait", passed.Round(time.Second), r.judge.Left())
		case state == catching && r.judge.Oldest() < now.Sub(r.block.To):
			state, r.recovered = after, now.Sub(r.block.To)
			r.Logf("%s: all that waited was there %s after the block", passed.Round(time.Second),
				r.recovered.Round(time.Second))
		}
		if now.Sub(logged) >= time.Minute {
			logged = now
			r.Logf("%s: %.1f MiB, %d events, %d wait (the oldest %s), %d segments, %d markers",
				passed.Round(time.Second), rss/mib,
				r.feed.Summary().Events, r.judge.Left(), r.judge.Oldest().Round(time.Second), r.feed.Summary().Segments,
				r.judge.Markers())
		}
		if passed >= r.Duration {
			r.ended = now
			return nil
		}
	}
}

const mib = 1 << 20

// end waits for the rest, stops the program, and reads to the end. Whatever fails, there is a report of hours.
func (r *run) end(ctx context.Context) (failures []string) {
	note := func(err error) bool {
		if err != nil {
			failures = append(failures, err.Error())
		}
		return err == nil
	}
	segments := r.feed.Summary().Finalized
	if !note(chaos.Await(ctx, endLimit, "all events and markers", func(context.Context) (bool, error) {
		return r.judge.Left() == 0 && r.judge.Markers() >= segments, nil
	})) {
		failures = append(failures, fmt.Sprintf("%d events are missing, %d markers of %d came", r.judge.Left(),
			r.judge.Markers(), segments))
	}
	if note(r.instance.Signal(syscall.SIGTERM)) {
		note(r.instance.Wait(stopLimit))
	}
	note(chaos.Await(ctx, endLimit, "read to the end", r.judge.Drained))
	text, err := chaos.Verify(r.Program, r.Dir, endLimit, []string{"--feed"}, r.env...)
	note(err)
	r.Logf("bridge verify --feed:\n%s", text)
	return failures
}
