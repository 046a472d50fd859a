package verify

import "fmt"

// Record is a record of a topic. A nil key makes it a marker.
type Record struct {
	Topic      string
	Partition  int32
	Offset     int64
	Key, Value []byte
	Headers    []Header
	Millis     int64
}

// Header is a header of a record.
type Header struct {
	Key   string
	Value []byte
}

// Header returns the value of a header, or nil.
func (r *Record) Header(key string) []byte {
	for i := range r.Headers {
		if r.Headers[i].Key == key {
			return r.Headers[i].Value
		}
	}
	return nil
}

// Validator checks one promise.
type Validator interface {
	Note(Record)
	// Failures returns what does not hold, the first of them at most, and one line that counts the rest.
	Failures() []Failure
}

// Failure is a broken promise and where it was seen.
type Failure struct {
	Topic     string
	Partition int32
	Offset    int64
	Problem   string
}

func (f Failure) String() string {
	if f.Topic == "" {
		return f.Problem
	}
	return fmt.Sprintf("%s, partition %d, offset %d: %s", f.Topic, f.Partition, f.Offset, f.Problem)
}

// kept is how many failures are kept in full.
const kept = 20

type failures struct {
	first []Failure
	more  int
}

func (f *failures) add(r *Record, format string, args ...any) {
	if len(f.first) == kept {
		f.more++
		return
	}
	f.first = append(f.first, Failure{r.Topic, r.Partition, r.Offset, fmt.Sprintf(format, args...)})
}

func (f *failures) Failures() []Failure {
	if f.more > 0 {
		return append(f.first[:len(f.first):len(f.first)], Failure{Problem: fmt.Sprintf("and %d more", f.more)})
	}
	return f.first
}
