package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// row is a line of the table: the base, with one property changed.
type row struct {
	axis  string
	value int
	load  load
}

// name is how -table selects a row.
func (r row) name() string { return fmt.Sprintf("%s=%d", r.axis, r.value) }

// mostSegments bounds the time of a row: small segments take longest.
const mostSegments = 4_000

// table returns the base, with a number of events, and all rows.
func table(events int) (base load, rows []row) {
	base = load{shards: 8, segments: 1, each: events, containers: 3, partitions: partitions, leases: 16, instances: 1}
	vary := func(axis string, change func(l *load, value int), values ...int) {
		for _, value := range values {
			r := row{axis, value, base}
			change(&r.load, value)
			rows = append(rows, r)
		}
	}
	vary("shards", func(l *load, n int) { l.shards = n }, 1, 2, 4, 16, 32, 64)
	vary("segment", func(l *load, n int) { // events of a segment
		l.segments, l.each = min(max(1, events/n), mostSegments), n
	}, 20, 200, 2_000, 20_000, 2_000_000)
	vary("partitions", func(l *load, n int) { l.partitions = n }, 1, 64, 256)
	vary("topics", func(l *load, n int) { // a topic with one partition for each container
		l.containers, l.template, l.partitions = n, true, 1
	}, 1, 10, 100, 1_000, 2_000)
	vary("instances", func(l *load, n int) { l.instances = n }, 2, 4)
	vary("leases", func(l *load, n int) { l.leases = n }, 1, 4)
	year := func(l *load) { // as most accounts have it
		l.shards, l.segments, l.each = 3, min(max(1, events/1000), 720), 1000
	}
	vary("delay", func(l *load, n int) { // of the storage, in milliseconds
		year(l)
		l.delay = time.Duration(n) * time.Millisecond
	}, 0, 10, 30, 60)
	vary("away", func(l *load, n int) { // the brokers, in milliseconds
		year(l)
		l.away = n > 0
	}, 0, int(brokersAway/time.Millisecond))
	vary("at-least-once", func(l *load, n int) { // the same without transactions
		year(l)
		l.away, l.atLeastOnce = n > 0, true
	}, 0, int(brokersAway/time.Millisecond))
	return base, rows
}

// selected returns the rows that names select: an axis, a row such as shards=64, or all.
func selected(rows []row, names []string) ([]row, error) {
	var chosen []row
	for _, name := range names {
		found := slices.DeleteFunc(slices.Clone(rows), func(r row) bool {
			return name != "all" && name != r.axis && name != r.name()
		})
		if len(found) == 0 {
			return nil, fmt.Errorf("selecting rows of the table: %q is none: name all, an axis such as shards, or a "+
				"row such as shards=64", name)
		}
		chosen = append(chosen, found...)
	}
	return chosen, nil
}

// tabulate measures each row in turn with the base, so that both see the same machine, and prints medians. It reads
// feeds from a blob endpoint in the memory of this process.
func tabulate(ctx context.Context, names []string, events, rounds, brokers int) error {
	base, rows := table(events)
	rows, err := selected(rows, names)
	if err != nil {
		return err
	}
	root, programs, err := prepare(nil)
	defer os.RemoveAll(root)
	if err != nil {
		return err
	}
	s, err := startCluster(ctx, brokers)
	if err != nil {
		return err
	}
	return errors.Join(measureRows(ctx, s, programs[0], base, rows, rounds), s.Close())
}

func measureRows(ctx context.Context, s *cluster, program string, base load, rows []row, rounds int) error {
	deliver := func(l load, e *endpoint) (cost, error) {
		return l.deliver(ctx, s, program, "default", e.url(), e.credentials()...)
	}
	baseFeed, err := serve(ctx, base)
	if err != nil {
		return err
	}
	defer baseFeed.close()
	if _, err := deliver(base, baseFeed); err != nil { // it warms up
		return err
	}
	fmt.Printf("| | events/s | of the base | CPU, µs an event | brokers' CPU, µs an event | peak memory, MB " +
		"| CPU in collection, %% | requests per 1,000 events | events a transaction |\n" +
		"|---|---|---|---|---|---|---|---|---|\n")
	var bases []cost
	for _, r := range rows {
		feed := baseFeed
		if !r.load.sameFeed(base) {
			if feed, err = serve(ctx, r.load); err != nil {
				return err
			}
		}
		var costs []cost
		var ratios []float64
		for range rounds {
			b, err := deliver(base, baseFeed)
			if err != nil {
				return err
			}
			c, err := deliver(r.load, feed)
			if err != nil {
				return fmt.Errorf("measuring %s: %w", r.name(), err)
			}
			bases, costs, ratios = append(bases, b), append(costs, c), append(ratios, c.perSecond/b.perSecond)
		}
		if feed != baseFeed {
			feed.close() // its memory
		}
		fmt.Println(line(r.axis+" "+strconv.Itoa(r.value), middle(costs), median(ratios)))
	}
	fmt.Println(line("base", middle(bases), 1))
	return nil
}

func line(name string, c cost, ratio float64) string {
	cells := []string{name, fmt.Sprintf("%.0f", c.perSecond), fmt.Sprintf("%.2f", ratio),
		fmt.Sprintf("%.1f", c.micros), fmt.Sprintf("%.1f", c.broker), fmt.Sprintf("%.0f", c.peak/1e6),
		fmt.Sprintf("%.1f", 100*c.collecting), fmt.Sprintf("%.2f", 1000*c.requests),
		fmt.Sprintf("%.0f", 1/c.transactions)}
	return "| " + strings.Join(cells, " | ") + " |"
}
