package ocf

import (
	"errors"
	"fmt"
)

// Plan decodes records of one writer schema. It is immutable.
type Plan struct{ steps []step }

// step reads one field of the record, or of the record "data" in it.
type step struct {
	name string
	typ  *schema
	read func(*reader, *schema, *Event) error // nil: the field is unknown, or has a type we don't expect there
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
	p := &Plan{}
	for _, f := range s.fields {
		if f.name == "data" && f.typ.kind == kRecord {
			for _, d := range f.typ.fields {
				p.add(d)
			}
			continue
		}
		p.add(f)
	}
	return p, nil
}

func (p *Plan) add(f field) {
	st := step{name: f.name, typ: f.typ}
	switch {
	case ignored[f.name]:
		st.read = ignore
	default:
		if t, ok := targets[f.name]; ok {
			st.read = t.reader(f.typ)
		}
	}
	p.steps = append(p.steps, st)
}

// ignore passes over a field: quickly if it is the map that every event of the feed has.
func ignore(r *reader, s *schema, _ *Event) error {
	if !isStringMap(s) {
		_, err := value(r, s, 0, false)
		return err
	}
	return r.entries(false, func() error {
		if _, err := r.string(); err != nil {
			return err
		}
		_, err := r.string()
		return err
	})
}

// Decode fills ev with the record at the beginning of data, and returns what follows.
func (p *Plan) Decode(data string, ev *Event) (rest string, err error) {
	r := reader{data}
	err = p.decode(&r, ev)
	return r.s, err
}

func (p *Plan) decode(r *reader, ev *Event) (err error) {
	ev.reset()
	for i := range p.steps {
		st := &p.steps[i]
		if st.read != nil {
			err = st.read(r, st.typ, ev)
		} else {
			err = extra(r, st, ev)
		}
		if err != nil {
			return fmt.Errorf("field %s: %w", st.name, err)
		}
	}
	return nil
}

// reset clears ev and keeps the capacity of its slices.
func (ev *Event) reset() {
	*ev = Event{
		PreviousInfo: ev.PreviousInfo[:0], AsyncOperationInfo: ev.AsyncOperationInfo[:0], RestorePointMarker: ev.RestorePointMarker[:0],
		BlobPropertiesUpdated: ev.BlobPropertiesUpdated[:0], BlobTagsUpdated: ev.BlobTagsUpdated[:0], Extra: ev.Extra[:0],
	}
}

func extra(r *reader, st *step, ev *Event) error {
	text, null, err := valueText(r, st.typ)
	if err == nil && !null {
		ev.Extra = append(ev.Extra, Pair{st.name, text})
	}
	return err
}
