package verify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// Validator checks one promise.
type Validator interface {
	Note(Record)
	// Failures returns what does not hold, the first of them at most, and one line that counts the rest. It may be
	// called at any time. Failures that only the end shows, such as missing events, are judged as if the topic ended
	// here.
	Failures() []Failure
}

// Failure is a broken promise and its place. Without a topic it is not at a record.
type Failure struct {
	Topic     string
	Partition int32
	Offset    int64
	Key       string // "" of a marker, and where the failure concerns no single key
	// Expected is of which record a failure of Replay is: the number among those of the key, in the order of Expect. It
	// is 0 where there is none.
	Expected int
	Lacking  bool // that record did not come, or not again: a place is that of another one
	Problem  string
}

func (f Failure) String() string {
	text := f.Problem
	if f.Key != "" {
		text = fmt.Sprintf("key %s: %s", f.key(), text)
	}
	if f.Topic != "" {
		text = fmt.Sprintf("%s, partition %d, offset %d: %s", f.Topic, f.Partition, f.Offset, text)
	}
	return text
}

// key returns the key as text: of one in Avro the path.
func (f Failure) key() string {
	if framed([]byte(f.Key)) {
		return (&Record{Key: []byte(f.Key)}).Path()
	}
	return f.Key
}

// MarshalJSON leaves out the place of a failure that is not at a record.
func (f Failure) MarshalJSON() ([]byte, error) {
	all := map[string]any{"problem": f.Problem}
	if f.Topic != "" {
		all["topic"], all["partition"], all["offset"] = f.Topic, f.Partition, f.Offset
	}
	if f.Key != "" {
		all["key"] = f.key()
	}
	return json.Marshal(all)
}

// kept is how many failures of a validator are kept in full. More would not help anybody.
const kept = 20

type failures struct {
	first   []Failure
	more    int64
	checked int64
}

// Checked is how many records were judged. Where it is 0 the validator has proved nothing.
func (f *failures) Checked() int64 { return f.checked }

func (f *failures) add(r *Record, format string, args ...any) {
	f.put(failureAt(r), format, args...)
}

// failureAt returns a failure at a record.
func failureAt(r *Record) Failure {
	return Failure{Topic: cmp.Or(r.In, r.Topic), Partition: r.Partition, Offset: r.Offset, Key: string(r.Key)}
}

// end adds what was not seen at a record.
func (f *failures) end(format string, args ...any) { f.put(Failure{}, format, args...) }

func (f *failures) put(x Failure, format string, args ...any) {
	if len(f.first) == kept {
		f.more++
		return
	}
	x.Problem = fmt.Sprintf(format, args...)
	f.first = append(f.first, x)
}

// copy returns failures to which more can be added for one answer.
func (f *failures) copy() *failures {
	return &failures{f.first[:len(f.first):len(f.first)], f.more, f.checked}
}

// Failures implements Validator.
func (f *failures) Failures() []Failure {
	first := f.first[:len(f.first):len(f.first)]
	if f.more > 0 {
		return append(first, Failure{Problem: fmt.Sprintf("and %d more", f.more)})
	}
	return first
}

// examples is how many missing events a failure names.
const examples = 5

// Group combines several validators.
type Group struct {
	validators []Validator
	doc        document
}

var (
	_ Validator = (*Group)(nil)
	_ Validator = (*Unique)(nil)
	_ Validator = (*Order)(nil)
	_ Validator = (*Sequence)(nil)
	_ Validator = (*Partition)(nil)
	_ Validator = (*Schema)(nil)
	_ Validator = (*Resolved)(nil)
	_ Validator = (*Scan)(nil)
	_ Validator = (*Time)(nil)
	_ Validator = (*Replay)(nil)
)

// All returns a Group that shows each record to all validators.
func All(validators ...Validator) *Group {
	return &Group{validators: validators}
}

// Note implements Validator.
func (g *Group) Note(r Record) {
	g.doc.parsed = false
	r.doc = &g.doc
	for _, v := range g.validators {
		v.Note(r)
	}
}

// Failures implements Validator. It prefixes the failures of each validator with its name.
func (g *Group) Failures() []Failure {
	var all []Failure
	for _, v := range g.validators {
		for _, f := range v.Failures() {
			f.Problem = name(v) + ": " + f.Problem
			all = append(all, f)
		}
	}
	return all
}

// name returns the name of a validator's type, without its package.
func name(v Validator) string {
	text := fmt.Sprintf("%T", v)
	return strings.ToLower(text[strings.LastIndexByte(text, '.')+1:])
}

// topicPartition is a partition of a topic.
type topicPartition struct {
	topic     string
	partition int32
}

func (p topicPartition) compare(o topicPartition) int {
	return cmp.Or(cmp.Compare(p.topic, o.topic), cmp.Compare(p.partition, o.partition))
}

// lanes is a state per partition. It remembers the last one: records mostly come partition by partition.
type lanes[T any] struct {
	at   topicPartition
	last *T
	all  map[topicPartition]*T
}

func (l *lanes[T]) of(r *Record) *T {
	at := topicPartition{r.Topic, r.Partition}
	if l.last != nil && l.at == at {
		return l.last
	}
	t := l.all[at]
	if t == nil {
		if l.all == nil {
			l.all = map[topicPartition]*T{}
		}
		t = new(T)
		l.all[at] = t
	}
	l.at, l.last = at, t
	return t
}

// byKey is a state per key. To change it in place costs no copy of the key.
type byKey[T any] map[string]*T

func (m *byKey[T]) at(key []byte) (state *T, known bool) {
	if s := (*m)[string(key)]; s != nil {
		return s, true
	}
	if *m == nil {
		*m = byKey[T]{}
	}
	s := new(T)
	(*m)[string(key)] = s
	return s, false
}
