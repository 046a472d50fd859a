package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"blobfeed/internal/progress"
)

// supervise calls run until it returns or a signal comes. The first signal lets it commit and hand over, the second
// stops it at once. Drain is called first, so that probes see that the instance stops.
func supervise(
	ctx context.Context, run func(stop, hard context.Context) error, p *progress.Progress, drain func(),
) error {
	hard, abort := context.WithCancel(ctx)
	defer abort()
	stop, cancel := context.WithCancel(hard)
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	go obey(hard, signals, func() { drain(); cancel() }, abort)
	go p.Show(hard)
	go giveBack(hard, p.Events)
	ended := make(chan error, 1)
	go func() { ended <- run(stop, hard) }()
	var err error
	select {
	case err = <-ended:
	case <-hard.Done():
		// Do not wait: brokers that are away would block.
		err = errors.New("stopped by a second signal: open transactions are aborted, and the next start repeats them")
	}
	p.Finish()
	return err
}

// echo is the time within which a second signal of the same kind counts as the first: timeout(1), and programs that
// forward the signals of a terminal, send a signal twice.
const echo = 100 * time.Millisecond

// obey calls first at the first signal and second at the second, until ctx ends.
func obey(ctx context.Context, signals <-chan os.Signal, first, second func()) {
	var heard os.Signal
	var at time.Time
	for {
		select {
		case s := <-signals:
			switch {
			case heard == nil:
				heard, at = s, time.Now()
				first()
			case s != heard || time.Since(at) > echo:
				second()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
