package envelope

import (
	"encoding/binary"

	"blobfeed/internal/plain"
)

// Subject is a schema, and the subject of the registry that it belongs to.
type Subject struct {
	Name   string // <topic>-key, <topic>-value, <topic>.resolved-value
	Schema string // Avro's JSON, which depends on nothing but the options
}

// Schemas returns the schemas of the records that an encoder with these options writes.
func Schemas(o Options) ([]Subject, error) {
	e, err := compile(o, blobs(o.Topic, o.AvroTimestamps))
	if err != nil {
		return nil, err
	}
	return e.schemas(), nil
}

func (e *Encoder) schemas() (s []Subject) {
	if e.o.KeyFormat == KeyAvro {
		s = append(s, Subject{e.keySubject(), e.key.schema(names{})})
	}
	if e.o.Format == Avro {
		if e.value != nil {
			s = append(s, Subject{e.valueSubject(), e.value.schema(names{})})
		}
		if e.o.Markers == MarkersTopic {
			s = append(s, Subject{e.markerSubject(), e.resolvedIn().schema(names{})})
		}
	}
	return s
}

func (e *Encoder) keySubject() string   { return e.o.Topic + "-key" }
func (e *Encoder) valueSubject() string { return e.o.Topic + "-value" }

// markerSubject is the subject of the topic itself if markers are in it.
func (e *Encoder) markerSubject() string {
	if e.o.Markers == MarkersTopic {
		return plain.MarkerTopic(e.o.Topic) + "-value"
	}
	return e.valueSubject()
}

// setIDs puts the id of its schema in front of each value.
func (e *Encoder) setIDs(ids map[string]int) {
	e.keyHead = confluent(ids[e.keySubject()])
	if e.o.Format == Avro {
		e.head = confluent(ids[e.valueSubject()])
		e.markerHead = confluent(ids[e.markerSubject()])
	}
}

// KeyID is the id of the schema of keys, or 0 if they have none. It is part of the key, so another id moves keys to
// other partitions.
func (e *Encoder) KeyID() int {
	if e.o.KeyFormat != KeyAvro {
		return 0
	}
	return int(binary.BigEndian.Uint32(e.keyHead[1:]))
}

// PinKey makes keys begin with the id of another schema of the same fields: that of the topic whose partitions they
// keep.
func (e *Encoder) PinKey(id int) {
	if e.o.KeyFormat == KeyAvro {
		e.keyHead = confluent(id)
	}
}
