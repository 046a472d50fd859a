package bridge

import (
	"time"

	"blobfeed/bridge/pipeline"
	"blobfeed/envelope"
	"blobfeed/source"
)

// Observer is called for what the engine does, such as metrics and the progress line. It implements one or more of the
// interfaces below, and is called for no more. Calls come from many goroutines and must not block.
type Observer any

// CommitObserver observes committed transactions.
type CommitObserver interface{ Committed(Commit) }

// CompletionObserver observes completed segments.
type CompletionObserver interface{ Completed(Completion) }

// HistoryObserver observes from time to time what the feed holds.
type HistoryObserver interface{ History(History) }

// FailureObserver observes errors that are retried. Lease is -1 if the error concerns the instance.
type FailureObserver interface{ Failed(lease int32, err error) }

// Adviser knows what a user can do about errors, by settings and verbs that the engine does not know. It returns err,
// with a remedy if it has one.
type Adviser interface{ Advise(err error) error }

// LeaseObserver observes leases that come or go. The first call says that this instance is a member of the group.
type LeaseObserver interface{ Leased(LeaseChange, []int32) }

// ActivityObserver observes what a lease does from now on. One that works and commits nothing for long is stuck.
type ActivityObserver interface{ Active(lease int32, a Activity) }

// TransactionObserver observes when the steps of each transaction were. Without one, no times are taken.
type TransactionObserver interface{ Ended(Transaction) }

// LeaseChange is what became of leases.
type LeaseChange int

const (
	LeasesAssigned LeaseChange = iota
	LeasesReleased             // handed over, after a last commit
	LeasesLost                 // the group gave them to others: this instance is no member any more
)

// Activity is what a lease does.
type Activity int

const (
	Working Activity = iota
	Waiting          // for other leases, or a newer segment
	Drained          // everything that is in the open segment so far is delivered
)

// Commit is one committed transaction of a lease.
type Commit struct {
	Lease    int32
	Segment  source.Segment
	Read     int           // events that the cursor passed
	Emitted  int           // of them written as records
	Filtered int           // left out by the settings
	Unknown  int           // of Filtered, of an unknown type
	Dead     int           // records of the dead-letter topic
	Late     int           // of Emitted, at or below a marker that was written before
	Rows     int           // of Emitted, records of a scan
	Bytes    int           // keys, values and headers
	Seen     time.Time     // the latest event time in it, also of events that are left out
	Drained  bool          // everything that is in an open segment so far is delivered
	Took     time.Duration // from the first record to the commit's acknowledgement
	// Published is, of a commit that drains an open segment, when the feed last grew; zero where that is not known.
	Published time.Time
	Recent    *pipeline.Recent // the last of its records
}

// History is how far the feed reaches.
type History struct {
	// Headroom is how much of it is older than what is to be read next. When the account's retention has used it up,
	// retention removes what was not delivered.
	Headroom time.Duration
	Newest   time.Time // begin of the newest segment
}

// Completion is a segment whose events are all delivered.
type Completion struct {
	Segment  source.Segment
	Resolved envelope.Timestamp // zero where there is no marker: they are off, or an initial scan bars them
	Markers  int                // records that say so
	Last     bool               // the feed has no later segment yet
}

// Observers is several in one. It implements all of the interfaces.
type Observers []Observer

// each calls f with those observers that implement I.
func each[I any](os Observers, f func(I)) {
	for _, o := range os {
		if o, ok := o.(I); ok {
			f(o)
		}
	}
}

func (os Observers) Committed(c Commit)     { each(os, func(o CommitObserver) { o.Committed(c) }) }
func (os Observers) Completed(c Completion) { each(os, func(o CompletionObserver) { o.Completed(c) }) }
func (os Observers) History(h History)      { each(os, func(o HistoryObserver) { o.History(h) }) }
func (os Observers) Failed(lease int32, err error) {
	each(os, func(o FailureObserver) { o.Failed(lease, os.advised(err)) })
}
func (os Observers) Leased(c LeaseChange, ls []int32) {
	each(os, func(o LeaseObserver) { o.Leased(c, ls) })
}
func (os Observers) Active(p int32, a Activity) {
	each(os, func(o ActivityObserver) { o.Active(p, a) })
}
func (os Observers) Ended(t Transaction) { each(os, func(o TransactionObserver) { o.Ended(t) }) }

// advised returns an error with what the observers know of its remedy.
func (os Observers) advised(err error) error {
	each(os, func(o Adviser) { err = o.Advise(err) })
	return err
}

// traced reports whether anybody wants to know of the steps of transactions.
func (os Observers) traced() (yes bool) {
	each(os, func(TransactionObserver) { yes = true })
	return yes
}

// Span is a part of the work on a transaction.
type Span = pipeline.Span

// Transaction is one that ended: a lease's, of records, or that of markers alone, which lease 0 writes behind a
// segment.
type Transaction struct {
	Commit
	// Err is nil if it is committed. Else it was given up, and the next acquisition of the lease finds out its outcome.
	Err      error
	Cursor   string // how far the lease is, shard=chunk/offset
	Blocks   int    // of chunks
	Segments int    // that it completed
	Markers  int    // which it holds
	// Reading and encoding are done ahead, by all shards side by side. A step that there was not is zero.
	Reading, Encoding, Publishing, Committing Span
}

// EventError is an error of the pipeline that an Observer can get.
type EventError = pipeline.EventError
