package simulation

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Step is something that happens to the feed, an instance or the brokers.
type Step struct {
	At       time.Duration
	Kind     Kind
	Instance int           // -1: none
	For      time.Duration // until it is undone; of a killed instance, until it starts again
	N        int           // events, partitions, requests
	Key      kmsg.Key      // of a request
	Err      *kerr.Error   // its answer
}

// Kind is what happens.
type Kind string

// The kinds of steps. The first ones are of the feed.
const (
	Append  Kind = "append"
	Burst   Kind = "burst" // whole segments at once, as after an outage of the bridge
	Next    Kind = "next"
	Reveal  Kind = "reveal"
	Roll    Kind = "roll"
	Remove  Kind = "remove" // the oldest blobs that retention may remove
	Damage  Kind = "damage" // the next block that is appended
	Pause   Kind = "pause"  // connections and store do not answer
	Kill    Kind = "kill"
	Stop    Kind = "stop"  // in order
	Cut     Kind = "cut"   // no connection to any broker
	Deaf    Kind = "deaf"  // requests arrive, answers do not
	Lose    Kind = "lose"  // the answers of some requests
	Late    Kind = "late"  // some requests arrive after their sender gave up
	Stall   Kind = "stall" // requests of a kind wait
	Slow    Kind = "slow"  // the store
	Fail    Kind = "fail"  // the store
	Refuse  Kind = "refuse"
	Shuffle Kind = "shuffle" // leaders of all partitions, coordinators of all groups and transactions
	Compact Kind = "compact"
	Grow    Kind = "grow" // partitions of the topic of records
	Seek    Kind = "seek"
	Reset   Kind = "reset"
	Scan    Kind = "scan"   // a request for one, or to cancel one
	Vanish  Kind = "vanish" // blobs are deleted, without events in the feed
)

func (s Step) String() string {
	text := fmt.Sprintf("%8s %-8s", s.At.Round(time.Millisecond), s.Kind)
	if s.Instance >= 0 {
		text += fmt.Sprintf(" instance %d", s.Instance)
	}
	if s.For > 0 {
		text += fmt.Sprintf(" for %s", s.For.Round(time.Millisecond))
	}
	if s.N > 0 {
		text += fmt.Sprintf(" n=%d", s.N)
	}
	if s.Key != 0 || s.Kind == Refuse {
		text += " " + s.Key.Name()
	}
	if s.Err != nil {
		text += " " + s.Err.Message
	}
	return text
}
