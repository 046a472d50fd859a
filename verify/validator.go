package verify

import (
	"cmp"
	"fmt"
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
	Problem  string
}

func (f Failure) String() string {
	text := f.Problem
	if f.Key != "" {
		text = fmt.Sprintf("key %s: %s", f.Key, text)
	}
	if f.Topic != "" {
		text = fmt.Sprintf("%s, partition %d, offset %d: %s", f.Topic, f.Partition, f.Offset, text)
	}
	return text
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
