package needs

import (
	"encoding/json"
	"io"
	"time"

	"go.yaml.in/yaml/v3"

	"blobfeed/envelope"
	"blobfeed/internal/plain"
	"blobfeed/source"
	"blobfeed/source/ocf"
)

type document = map[string]any

// AsyncAPI writes a description of the topic for those who read it: its address, and the form of its records. With Avro
// it has the schemas; with JSON, an example that the bridge's encoder makes.
func (n *Needs) AsyncAPI(w io.Writer) error {
	t, err := n.topic()
	if err != nil {
		return err
	}
	record, err := n.message()
	if err != nil {
		return err
	}
	cleanup := []string{}
	if policy := t.Settings["cleanup.policy"]; policy != nil {
		cleanup = append(cleanup, *policy)
	}
	channels := document{"records": document{
		"address": t.Name, "description": "Changes of blobs. A record without a key is a marker.",
		"messages": document{"change": record},
		"bindings": document{"kafka": document{"partitions": t.Partitions,
			"topicConfiguration": document{"cleanup.policy": cleanup}, "bindingVersion": "0.5.0"}},
	}}
	if n.record.Markers == envelope.MarkersTopic {
		channels["markers"] = document{"address": plain.MarkerTopic(t.Name),
			"description": "Markers: no record with updated at or below the resolved time follows."}
	}
	servers := document{}
	protocol := "kafka"
	if n.config.KafkaTLSEnabled {
		protocol = "kafka-secure"
	}
	for _, broker := range n.config.KafkaBrokers {
		servers[serverName(len(servers))] = document{"host": broker, "protocol": protocol}
	}
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	err = e.Encode(document{
		"asyncapi": "3.0.0",
		"info": document{"title": "Blob changes of bridge " + n.Name, "version": "1.0.0",
			"description": "docs/events.md of the bridge explains records and markers. " +
				"Read with isolation.level=read_committed."},
		"servers": servers, "channels": channels,
		"operations": document{"send": document{"action": "send", "channel": document{"$ref": "#/channels/records"}}},
	})
	if err != nil {
		return err
	}
	return e.Close()
}

func serverName(n int) string { return "broker" + string(rune('0'+n%10)) }

// message describes the records.
func (n *Needs) message() (document, error) {
	m := document{"name": "change", "contentType": "application/json"}
	if n.record.Format == envelope.Avro {
		m["contentType"] = "application/avro"
		subjects, err := envelope.Schemas(n.record)
		if err != nil {
			return nil, err
		}
		for _, s := range subjects {
			if s.Name == n.record.Topic+"-value" {
				m["payload"], err = avro(s)
			}
			if s.Name == n.record.Topic+"-key" {
				var key document
				key, err = avro(s)
				m["bindings"] = document{"kafka": document{"key": key, "bindingVersion": "0.5.0"}}
			}
			if err != nil {
				return nil, err
			}
		}
		return m, nil
	}
	value, headers, err := n.example()
	if err != nil {
		return nil, err
	}
	m["headers"] = document{"type": "object", "properties": headers}
	m["payload"] = document{"type": []string{"object", "null"}}
	if value != nil {
		m["examples"] = []document{{"name": "creation", "payload": value}}
	}
	return m, nil
}

// avro returns a schema as AsyncAPI has it.
func avro(s envelope.Subject) (document, error) {
	var schema any
	if err := json.Unmarshal([]byte(s.Schema), &schema); err != nil {
		return nil, err
	}
	return document{"schemaFormat": "application/vnd.apache.avro;version=1.9.0", "schema": schema}, nil
}

// example returns the value and the headers of a record, as the encoder writes them. Nil: values are empty.
func (n *Needs) example() (value any, headers document, err error) {
	r, err := Example(n.record)
	if err != nil {
		return nil, nil, err
	}
	headers = document{}
	for _, h := range r.Headers {
		headers[h.Key] = document{"type": "string", "examples": []string{string(h.Value)}}
	}
	if len(r.Value) > 0 {
		err = yaml.Unmarshal(r.Value, &value) // which keeps long integers
	}
	return value, headers, err
}

// Example returns the record of an invented event, as the encoder writes it.
func Example(o envelope.Options) (r envelope.Record, err error) {
	o.Register = func(envelope.Subject) (int, error) { return 1, nil } // of keys; nothing is registered
	o.Now = func() int64 { return time.Date(2026, 1, 31, 12, 0, 1, 0, time.UTC).UnixNano() }
	encoder, err := envelope.NewEncoder(o)
	if err != nil {
		return r, err
	}
	segment, err := source.ParseSegment("2026/01/31/1200")
	if err != nil {
		return r, err
	}
	_, _, err = encoder.Append(nil, &r, &ocf.Event{
		SchemaVersion: 6, EventType: "BlobCreated", API: "PutBlob",
		Topic:     "/subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/myaccount",
		Subject:   "/blobServices/default/containers/photos/blobs/cat.jpg",
		EventTime: "2026-01-31T12:00:00.0000000Z", ID: "00000000-0000-0000-0000-000000000000", ETag: "0x8D",
		BlobType: "BlockBlob", BlobTier: "Hot", ContentType: "image/jpeg", ContentLength: 1024, HasContentLength: true,
		Sequencer: "00000000000000000000000000000001000000000000002a",
	}, source.Position{Segment: segment, Offset: 2434})
	return r, err
}
