// Package change moves or removes the state of a bridge from outside: what the verbs seek, reset, scan and replay do. A
// change is prepared first, so that people can read what it will do, and applied afterwards.
package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/config"
	"blobfeed/internal/plain"
	"blobfeed/internal/setup"
	"blobfeed/internal/status"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
)

// Kind is what to change: Seek or Reset.
type Kind struct {
	fill  func(context.Context, *offsets.State, *Plan) error
	apply func(context.Context, *offsets.Seized) error
}

// Plan is a change of one state. Its JSON is the answer of the verbs.
type Plan struct {
	Name    string   `json:"name"`
	Rows    []Row    `json:"changes"`
	Notes   []string `json:"notes"`
	Members []string `json:"members"` // live instances
	Done    bool     `json:"done"`

	kind     Kind
	reader   *status.Reader
	config   *config.Config
	delivery string
	leases   int
	missing  bool   // the topic of the state: Apply creates it
	refused  string // why the change is not applied unless it is forced
	instead  string // what to do rather than that
}

// Row is one value before and after the change.
type Row struct {
	What   string `json:"what"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Prepare reads the state of the bridge that the settings name, and plans the change.
func Prepare(ctx context.Context, r *status.Reader, c *config.Config, kind Kind) (*Plan, error) {
	state, err := r.State(ctx)
	never, missing := errors.AsType[*status.NeverRanError](err)
	if missing {
		state, err = &offsets.State{Cursors: make([]*offsets.Cursor, c.OffsetsLeases)}, nil
	}
	if err != nil {
		return nil, err
	}
	group, err := r.Group(ctx)
	if err != nil {
		return nil, err
	}
	p := &Plan{Name: r.Name, Notes: []string{}, Members: []string{},
		kind: kind, reader: r, config: c, delivery: c.Delivery, leases: len(state.Cursors), missing: missing}
	if f := state.Frontier; f != nil && f.Settings[offsets.FrozenDelivery] != "" {
		p.delivery = f.Settings[offsets.FrozenDelivery] // of the instances; the operator's environment may lack it
	}
	for _, m := range group.Members {
		p.Members = append(p.Members, m.Instance)
	}
	if missing {
		p.note("Topic %s does not exist and is created, with %s (BRIDGE_OFFSETS_LEASES) and for BRIDGE_DELIVERY=%s: "+
			"use the settings of bridge run.", r.Topic, plain.Count(p.leases, "partition"), p.delivery)
	}
	err = kind.fill(ctx, state, p)
	if missing && !never.Group && p.refused == "" { // a typing error would make a state that nobody continues
		p.refused = "no bridge of the name " + r.Name + " has run on these brokers"
		p.instead = "correct BRIDGE_NAME or BRIDGE_KAFKA_BROKERS"
	}
	if p.refused != "" {
		p.note("This needs --force: %s.", p.refused)
	}
	return p, err
}

// Apply does what is planned. Live instances, a name that has never run, and a place that the feed does not have,
// prevent that unless it is forced.
func (p *Plan) Apply(ctx context.Context, force bool) error {
	if err := p.allowed(force); err != nil {
		return err
	}
	if p.missing {
		if err := p.create(ctx); err != nil {
			return err
		}
	}
	exact := p.delivery == "exactly_once"
	s, err := offsets.Seize(ctx, &offsets.Config{
		Topic: p.reader.Topic, Name: p.config.Name, Instance: p.config.Instance + "-cli", Transactional: exact,
		TxnTimeout: p.config.TxnTimeout, Client: p.reader.Client, Now: time.Now,
	}, p.leases)
	if err == nil {
		defer s.Close(ctx)
		err = p.kind.apply(ctx, s)
	}
	if errors.Is(err, offsets.ErrFenced) {
		return fmt.Errorf("%w: a running instance took lease 0 back and nothing changed; repeat the command", err)
	}
	p.Done = err == nil
	return err
}

// create makes the topic of the state as a start does.
func (p *Plan) create(ctx context.Context) error {
	o, err := setup.WithoutFeed(p.config)
	if err != nil {
		return &plain.SettingsError{Problem: err.Error()}
	}
	cl, err := kgo.NewClient(p.reader.Client...)
	if err != nil {
		return fmt.Errorf("creating the Kafka client: %w", err)
	}
	defer cl.Close()
	admin := &topics.Admin{Plan: o.TopicPlan(), Client: cl, Now: time.Now}
	state := topics.Topic{Kind: topics.State, Name: p.reader.Topic, Partitions: o.Kafka.Leases}
	if err := admin.Missing(ctx, state); err != nil {
		return err
	}
	_, created, err := admin.OpenState(ctx, state.Name, state.Partitions)
	if err == nil && !created {
		err = fmt.Errorf("topic %s was created meanwhile: repeat the command", state.Name)
	}
	return err
}

// Flags returns those that apply the plan.
func (p *Plan) Flags() string {
	if p.refused != "" {
		return "--yes --force"
	}
	return "--yes"
}

func (p *Plan) allowed(force bool) error {
	if p.refused != "" && !force {
		return fmt.Errorf("%s: %s, or add --force", p.refused, p.instead)
	}
	if len(p.Members) == 0 {
		return nil
	}
	why, do := "", "stop them and wait for BRIDGE_SESSION_TIMEOUT (a killed instance stays a member until then)"
	switch {
	case p.missing:
		why = ", which still use the deleted topic " + p.reader.Topic
	case p.delivery != "exactly_once":
		why = ", and without transactions nothing stops them from writing"
	case force:
		return nil
	default:
		do += ", or add --force"
	}
	return fmt.Errorf("group %s has live members (%s)%s: %s", p.Name, strings.Join(p.Members, ", "), why, do)
}

func (p *Plan) add(what, before, after string) {
	p.Rows = append(p.Rows, Row{what, cmp.Or(before, "-"), cmp.Or(after, "-")})
}

func (p *Plan) note(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

// Text writes the plan for people.
func (p *Plan) Text(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\tnow\tafterwards\n", p.Name)
	for _, r := range p.Rows {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.What, r.Before, r.After)
	}
	_ = w.Flush() // out keeps its error for the end of the verb
	for _, n := range p.Notes {
		fmt.Fprintf(out, "- %s\n", n)
	}
	if len(p.Members) > 0 {
		fmt.Fprintf(out, "- These instances run: %s.\n", strings.Join(p.Members, ", "))
	}
}

// Reset removes the state.
func Reset() Kind {
	return Kind{
		fill:  func(_ context.Context, s *offsets.State, p *Plan) error { planReset(s, p); return nil },
		apply: func(ctx context.Context, s *offsets.Seized) error { return s.Reset(ctx) },
	}
}

func planReset(s *offsets.State, p *Plan) {
	if f := s.Frontier; f != nil {
		p.add("feed", f.Feed, "")
		p.add("continues at", place(f), "BRIDGE_START of the next start")
		p.add("resolved", when(f.Resolved), "")
		for _, name := range slices.Sorted(maps.Keys(f.Settings)) {
			p.add("frozen "+name, f.Settings[name], "setting of the next start")
		}
		if topics := slices.Sorted(maps.Keys(f.Topics)); len(topics) > 0 {
			p.note("The records in %s stay. If the next start writes to the same topics, their promises end: events "+
				"are repeated, markers start again from the beginning, and with other settings keys may move to other "+
				"partitions. If consumers rely on the promises, use new topics or delete these.",
				strings.Join(topics, ", "))
		}
	} else {
		p.note("There is no progress to remove. The next start begins at BRIDGE_START, also if topics hold records.")
	}
	for lease, cur := range s.Cursors {
		if cur != nil {
			now := cmp.Or(cur.Segment.String(), "-") + ", " + plain.Count(cur.Counts.Read, "event")
			p.add(fmt.Sprintf("lease %d", lease), now, "")
		}
	}
}
