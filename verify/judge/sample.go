package judge

import (
	"encoding/json"

	"blobfeed/envelope"
	"blobfeed/source"
	"blobfeed/verify"
)

// sample returns the record of an event of a type, as the options make it.
func sample(o envelope.Options, eventType string) (r verify.Record, ok bool) {
	schemas := map[int]string{}
	o.Topic, o.Register = "sample", func(s envelope.Subject) (int, error) {
		schemas[len(schemas)] = s.Schema
		return len(schemas) - 1, nil
	}
	encoder, err := envelope.NewEncoder(o)
	if err != nil {
		return r, false
	}
	ev := source.Event{EventType: eventType, EventTime: "2026-01-01T00:00:00.0000000Z",
		Topic:   "/subscriptions/s/resourceGroups/r/providers/Microsoft.Storage/storageAccounts/a",
		Subject: "/blobServices/default/containers/c/blobs/b", Sequencer: "1",
		ID: "00000000-0000-0000-0000-000000000000"}
	var rec envelope.Record
	_, emit, err := encoder.Append(nil, &rec, &ev, source.Position{})
	avro := verify.NewAvro(func(id int) (string, error) { return schemas[id], nil })
	return recordOf(&rec, avro), emit && err == nil
}

// writesRows reports whether the values under these settings are rows.
func writesRows(o envelope.Options) bool {
	r, ok := sample(o, "BlobCreated")
	var row struct{ Path *string }
	return ok && json.Unmarshal(r.Value, &row) == nil && row.Path != nil
}

// says reports whether every record under these settings, also of a deletion, identifies its event and has its time.
func says(o envelope.Options) (event, time bool) {
	event, time = true, true
	for _, eventType := range []string{"BlobCreated", "BlobDeleted"} {
		r, ok := sample(o, eventType)
		e, t := r.Says()
		event, time = event && (e || !ok), time && (t || !ok)
		if eventType == "BlobDeleted" && o.Deletes == envelope.DeletesBoth {
			e, t = (&verify.Record{Key: r.Key, Headers: r.Headers}).Says() // the tombstone behind it
			event, time = event && (e || !ok), time && (t || !ok)
		}
	}
	return event, time
}

// sequenced reports whether rows under these settings have their event's sequencer.
func sequenced(o envelope.Options) bool {
	r, ok := sample(o, "BlobCreated")
	return !ok || r.Sequenced()
}

// namesAccount reports whether every record under these settings, also of a deletion, names its account.
func namesAccount(o envelope.Options) bool {
	for _, eventType := range []string{"BlobCreated", "BlobDeleted"} {
		if r, ok := sample(o, eventType); ok && r.Account() == "" {
			return false
		}
	}
	return true
}

// recordOf returns a record as the encoder made it.
func recordOf(rec *envelope.Record, avro *verify.Avro) verify.Record {
	r := verify.Record{Key: rec.Key, Value: rec.Value, Millis: rec.Millis, Avro: avro}
	r.Headers = make([]verify.Header, len(rec.Headers))
	for i, h := range rec.Headers {
		r.Headers[i] = verify.Header(h)
	}
	return r
}

// recordsOf returns the record of an event, and the tombstone behind it, if it has one.
func recordsOf(rec *envelope.Record, avro *verify.Avro) []verify.Record {
	all := []verify.Record{recordOf(rec, avro)}
	if rec.Tombstone {
		second := all[0]
		second.Value = nil
		all = append(all, second)
	}
	return all
}
