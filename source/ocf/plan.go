package ocf

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// Plan decodes records of one writer schema. It is immutable.
type Plan struct {
	steps []step
	empty bool // a record may take no bytes
}

// op is what a step does with the bytes at hand.
type op uint8

const (
	opExtra  op = iota // the field is unknown, or has a type we don't expect there
	opNull             // nothing to read
	opString           // into a text field
	opSymbol           // into a text field
	opLong             // into an integer field
	opPairs
	opProperties
	opTags
	opRecord // the record "data"
	opUnion  // one of branches, as an index says
	opIgnore
	opIgnorePairs // opIgnore of the map that every event of the feed has
)

// action is compiled from the type of a field.
type action struct {
	op       op
	typ      *schema
	branches []action // of opUnion
	steps    []step   // of opRecord
}

// step reads one field of a record.
type step struct {
	name string
	to   *Field
	at   uintptr // of to
	action
}

// ignored fields are known and of no use: the service's own diagnostics.
var ignored = map[string]bool{"storageDiagnostics": true}

// CompilePlan compiles a writer schema, JSON text. The schema must be a record.
func CompilePlan(text string) (*Plan, error) {
	s, err := parseSchema(text)
	if err != nil {
		return nil, err
	}
	if s.kind != kRecord {
		return nil, errors.New("the schema is not a record")
	}
	p := &Plan{empty: s.empty}
	for _, f := range s.fields {
		st := compile(f, envelopeFields)
		if data, ok := compileData(f.typ); ok && f.name == "data" {
			st.action = data
		}
		p.steps = append(p.steps, st)
	}
	return p, nil
}

// compiled is a plan and its schema.
type compiled struct {
	schema string
	plan   *Plan
}

// latest is what planOf has compiled last.
var latest atomic.Pointer[compiled]

// mostShared is the size of the largest schema whose plan is kept. Real ones have 3 KB.
const mostShared = 64 << 10

// planOf returns the plan of a schema. Chunks have the same one for years, and compiling it takes longer than decoding
// a hundred events.
func planOf(schema string) (*Plan, error) {
	if l := latest.Load(); l != nil && l.schema == schema {
		return l.plan, nil
	}
	p, err := CompilePlan(schema)
	if err == nil && len(schema) <= mostShared {
		latest.Store(&compiled{schema, p})
	}
	return p, err
}

// compileData compiles the record "data", which may be nullable.
func compileData(s *schema) (action, bool) {
	switch s.kind {
	case kNull:
		return action{op: opNull}, true
	case kRecord:
		a := action{op: opRecord, typ: s}
		for _, f := range s.fields {
			a.steps = append(a.steps, compile(f, dataFields))
		}
		return a, true
	case kUnion:
		return compileUnion(s, compileData)
	}
	return action{}, false
}

// compile finds the place of a field by its name. Names count where the feed has them only: an "id" inside data is
// another field than the event's id, and must not replace it.
func compile(f field, known map[string]*Field) step {
	st := step{name: f.name, action: action{op: opExtra, typ: f.typ}}
	if ignored[f.name] {
		if st.op = opIgnore; isStringMap(f.typ) {
			st.op = opIgnorePairs
		}
		return st
	}
	if to := known[f.name]; to != nil {
		if a, ok := to.action(f.typ); ok {
			st.to, st.at, st.action = to, to.at, a
		}
	}
	return st
}

// compileUnion compiles a union if each branch fits: one that doesn't makes the whole field go to Extra.
func compileUnion(s *schema, branch func(*schema) (action, bool)) (action, bool) {
	a := action{op: opUnion, typ: s}
	for _, b := range s.union {
		c, ok := branch(b)
		if !ok {
			return action{}, false
		}
		a.branches = append(a.branches, c)
	}
	return a, true
}

func (p *Plan) decode(r *reader, ev *Event) error {
	ev.reset()
	return run(p.steps, r, ev)
}

func run(steps []step, r *reader, ev *Event) error {
	for i := range steps {
		st := &steps[i]
		a := &st.action
		var err error
		if a.op == opUnion {
			if i := r.short(); i >= 0 && i < len(a.branches) {
				a = &a.branches[i]
				r.at++
			} else if i, err = r.branch(len(a.branches)); err == nil {
				a = &a.branches[i]
			} else {
				return fmt.Errorf("field %s: %w", clip(st.name), err)
			}
		}
		switch a.op {
		case opString:
			if n := r.short(); n >= 0 && n < len(r.data)-r.at {
				*in[string](ev, st.at) = r.data[r.at+1 : r.at+1+n]
				r.at += 1 + n
				continue
			}
			*in[string](ev, st.at), err = r.string()
		case opSymbol:
			if i := r.short(); i >= 0 && i < len(a.typ.symbols) && len(a.typ.symbols[i]) <= shortText {
				*in[string](ev, st.at) = a.typ.symbols[i]
				r.at++
				continue
			}
			*in[string](ev, st.at), err = r.symbol(a.typ)
		case opLong:
			var v int64
			if v, err = r.long(); err == nil {
				st.to.setNumber(ev, v, true)
			}
		case opNull:
			err = r.spend(1)
		case opRecord:
			err = run(a.steps, r, ev)
		case opIgnorePairs:
			err = r.ignorePairs()
		case opIgnore:
			err = r.skip(a.typ, 0)
		case opPairs:
			err = r.pairs(a.typ, in[[]Pair](ev, st.at))
		case opProperties:
			err = r.properties(a.typ, in[[]PropertyChange](ev, st.at))
		case opTags:
			err = r.tags(a.typ, in[[]TagSet](ev, st.at))
		default:
			err = r.extra(st, ev)
		}
		if err != nil {
			return fmt.Errorf("field %s: %w", clip(st.name), err)
		}
	}
	return nil
}

// reset clears ev and keeps the capacity of its slices. It also clears the entries behind their ends: a leftover string
// would keep its block in memory, and a reused event could keep one block after another (I9).
func (e *Event) reset() {
	previous, async, restore := emptied(e.PreviousInfo), emptied(e.AsyncOperationInfo), emptied(e.RestorePointMarker)
	properties, extra := emptied(e.BlobPropertiesUpdated), emptied(e.Extra)
	tags := e.BlobTagsUpdated
	for i := range tags {
		tags[i] = TagSet{Tags: emptied(tags[i].Tags)}
	}
	if tags = tags[:0]; cap(tags) > maxKept {
		tags = nil
	}
	*e = Event{}
	e.PreviousInfo, e.AsyncOperationInfo, e.RestorePointMarker = previous, async, restore
	e.BlobPropertiesUpdated, e.BlobTagsUpdated, e.Extra = properties, tags, extra
}

// maxKept is the capacity up to which an event keeps a slice for the next one: real ones have ten entries at most.
const maxKept = 64

// emptied returns s without its entries, or nothing where it was unusually large (I9).
func emptied[T any](s []T) []T {
	if cap(s) > maxKept {
		return nil
	}
	clear(s)
	return s[:0]
}

func (r *reader) extra(st *step, ev *Event) error {
	text, null, err := r.valueText(st.typ)
	if err == nil && !null {
		ev.Extra = append(ev.Extra, Pair{st.name, text})
		err = r.spendText(st.name)
	}
	return err
}
