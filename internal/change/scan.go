package change

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/status"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
	"blobfeed/source/inventory"
)

// Scan is what to ask a bridge for. Its JSON is the answer of the verb.
type Scan struct {
	ID        string `json:"id"`
	Container string `json:"container,omitempty"`
	Prefix    string `json:"prefix,omitempty"`
	Sweep     bool   `json:"sweep,omitempty"`
	Cancel    bool   `json:"cancelled,omitempty"`
	// MaxDeletions is how many deletions the sweep may write; 0: any number.
	MaxDeletions int64 `json:"max_deletions,omitempty"`
	Running      bool  `json:"running"` // an instance runs, and carries it out
	Begun        bool  `json:"-"`       // what is cancelled; else its request is replaced

	Shared     bool `json:"-"` // other accounts write to the topics, too
	Tombstones bool `json:"-"` // deletions are records without a value
	Filtered   bool `json:"-"` // a filter leaves out deletions

	Account inventory.Store `json:"-"` // nil if the settings name none

	behind int64 // an offset behind the request, in the partition of the frontier; 0: not asked yet
}

// Check returns the state of the bridge, or why it can't carry out the scan.
func (s *Scan) Check(ctx context.Context, r *status.Reader) (*offsets.State, error) {
	state, err := r.State(ctx)
	if err != nil {
		return nil, err
	}
	if s.ID, err = s.allowed(state, time.Now().UTC()); err != nil {
		return nil, err
	}
	if err := s.exists(ctx); err != nil {
		return nil, err
	}
	if !s.Sweep || s.Cancel {
		return state, nil
	}
	cl, err := kgo.NewClient(r.Client...)
	if err != nil {
		return nil, fmt.Errorf("creating the Kafka client: %w", err)
	}
	defer cl.Close()
	admin := &topics.Admin{Client: cl}
	if err := admin.KeepsKeys(ctx, slices.Sorted(maps.Keys(state.Frontier.Topics))...); err != nil {
		return nil, fmt.Errorf("a sweep compares all keys with the account: %w; leave out --sweep, or use a topic "+
			"with cleanup.policy=compact", err)
	}
	return state, nil
}

// Request asks the bridge for a scan, or to cancel the one that is under way. It returns when the request is stored.
func (s *Scan) Request(ctx context.Context, r *status.Reader) error {
	state, err := s.Check(ctx, r)
	if err != nil {
		return err
	}
	group, err := r.Group(ctx)
	if err != nil {
		return err
	}
	s.Running = len(group.Members) > 0
	cl, err := kgo.NewClient(r.Client...)
	if err != nil {
		return fmt.Errorf("creating the Kafka client: %w", err)
	}
	defer cl.Close()
	return offsets.Ask(ctx, cl, r.Topic, offsets.Request{
		ID: s.ID, Epoch: state.Epoch, Time: time.Now().UTC(), Cancel: s.Cancel, Sweep: s.Sweep, Container: s.Container,
		Prefix: s.Prefix, MaxDeletions: s.MaxDeletions,
	})
}

// Shows reports whether the request, which is stored, can be read in the state: a transaction that an instance has left
// open may hide it.
func (s *Scan) Shows(ctx context.Context, r *status.Reader) (bool, error) {
	if s.behind == 0 {
		ends, err := topics.Offsets(ctx, r.Admin.ListEndOffsets, r.Topic)
		if err != nil {
			return false, fmt.Errorf("reading the ends of %s: %w", r.Topic, err)
		}
		s.behind = ends[r.Topic][0].Offset
	}
	state, err := r.State(ctx)
	return err == nil && state.Passed(0, s.behind), err
}

// containerName is what Azure allows, besides the names that begin with a dollar sign.
var containerName = regexp.MustCompile(`^[a-z0-9](-?[a-z0-9]){2,62}$`)

// CheckContainer rejects a name that no container to scan can have.
func (s *Scan) CheckContainer() error {
	switch name := s.Container; {
	case name == "" || name == "$web" || name == "$root":
		return nil
	case strings.HasPrefix(name, "$"):
		return fmt.Errorf("--container %s: the service writes this container itself, and the feed has no events of it",
			name)
	case len(name) > 63 || !containerName.MatchString(name):
		return fmt.Errorf("--container %q: want 3 to 63 lowercase letters, digits and single hyphens", name)
	}
	return nil
}

// exists returns an error if the account has no container of that name.
func (s *Scan) exists(ctx context.Context) error {
	if s.Container == "" || s.Account == nil {
		return nil
	}
	_, err := s.Account.List(ctx, inventory.Query{Container: s.Container, Max: 1})
	if errors.Is(err, inventory.ErrNoContainer) {
		return fmt.Errorf("the account has no container %s", s.Container)
	}
	if err != nil {
		return fmt.Errorf("looking for container %s: %w", s.Container, err)
	}
	return nil
}

// allowed returns the ID of the scan, or why the request makes no sense.
func (s *Scan) allowed(state *offsets.State, now time.Time) (id string, err error) {
	f := state.Frontier
	switch {
	case f == nil:
		return "", errors.New("this bridge has never started: set BRIDGE_INITIAL_SCAN=yes for its first start")
	case strings.HasPrefix(f.Feed, "file:"):
		return "", fmt.Errorf("the feed of this bridge is %s, and a directory has no account to list", f.Feed)
	case s.Cancel && !f.Scan.Active():
		if next := state.Requested(); next != nil { // if it begins meanwhile, this cancels it
			return next.ID, nil
		}
		return "", errors.New("no scan is under way")
	case s.Cancel && f.Scan.Initial:
		return "", errors.New("the initial scan cannot be cancelled, since the feed is delivered behind it: " +
			"to start without it, use bridge reset and BRIDGE_INITIAL_SCAN=no")
	case s.Cancel:
		s.Begun = true
		return f.Scan.ID, nil
	case f.Scan.Active():
		return "", fmt.Errorf("scan %s is under way: wait for its end, or cancel it with bridge scan --cancel",
			f.Scan.ID)
	case state.Requested() != nil: // a later request would take its place
		return "", fmt.Errorf("scan %s is requested and has not begun: start an instance, or cancel it with "+
			"bridge scan --cancel", state.Requested().ID)
	case f.Ended && f.Scan != nil && f.Scan.Only:
		return "", errors.New("the bridge has exported the account (BRIDGE_INITIAL_SCAN=only) and does nothing more: " +
			"to export again, use bridge reset, or another BRIDGE_NAME and BRIDGE_TOPIC")
	case f.Ended:
		return "", errors.New("the feed is delivered to BRIDGE_END_TIME, and the bridge does nothing more: " +
			"bridge seek makes it continue")
	case s.Sweep && f.Settings[offsets.FrozenEnvelope] == "key_only" && !s.Tombstones:
		return "", errors.New("a sweep needs records that say which keys are deleted, and those of ENVELOPE=key_only " +
			"do not: leave out --sweep")
	case s.Sweep && s.Filtered:
		return "", errors.New("BRIDGE_EVENT_TYPES leaves out BlobDeleted, and a sweep writes deletions: " +
			"leave out --sweep")
	case s.Sweep && s.Shared:
		return "", errors.New("other accounts write to these topics, too (BRIDGE_TOPIC_SHARED), and a sweep cannot " +
			"tell their keys apart: leave out --sweep")
	}
	return offsets.ScanID(now), nil
}

// Text writes what happens now, for people.
func (s *Scan) Text(out io.Writer) error {
	did := "requested"
	if s.Cancel {
		did = "cancelled"
	}
	who := "an instance carries it out; bridge status shows its progress"
	switch {
	case s.Cancel && !s.Begun:
		who = "no instance had begun it"
	case !s.Running:
		who = "no instance runs: the next start carries it out"
	}
	_, err := fmt.Fprintf(out, "scan %s %s; %s\n", s.ID, did, who)
	return err
}
