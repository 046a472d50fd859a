package setup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/config"
	"blobfeed/internal/kafka"
	"blobfeed/source"
	"blobfeed/source/ocf"
)

// Output turns settings into the form of records, their topics, and a function that makes the encoder of a topic.
func Output(c *config.Config, account string, observe Observe) (
	record envelope.Options, topics *envelope.Topics,
	encoder func(context.Context, string) (*envelope.Encoder, error), err error,
) {
	record, problems := Record(c)
	topics, err = envelope.NewTopics(c.Topic, account)
	if err := errors.Join(append(problems, err)...); err != nil {
		return record, nil, nil, err
	}
	record.Account = account
	registry, err := Registry(c, observe)
	if err != nil {
		return record, nil, nil, err
	}
	encoder = func(ctx context.Context, topic string) (*envelope.Encoder, error) {
		o := record
		o.Topic = topic
		if registry != nil {
			o.Register = func(s envelope.Subject) (int, error) { return registry.ID(ctx, s.Name, s.Schema) }
		}
		e, err := envelope.NewEncoder(o)
		var refused *kafka.SchemaError
		if _, one := topics.Constant(); one && errors.As(err, &refused) {
			return nil, &refusedError{err}
		}
		return e, err
	}
	return record, topics, encoder, nil
}

// refusedError is a schema that the registry rejects or does not have, for a bridge with one topic. All records need
// that schema, so to the engine it is an error of the settings. A template makes many topics, and the schema of one can
// be registered later: such an error stops only the shards with events for that topic.
type refusedError struct{ error }

func (e *refusedError) Unwrap() []error {
	return []error{e.error, &bridge.SettingsError{Problem: e.Error()}}
}

// Registry returns the client of the schema registry, or nil if the settings need none.
func Registry(c *config.Config, observe Observe) (*kafka.Registry, error) {
	if !c.Registry() {
		return nil, nil
	}
	r := kafka.Registry{
		URLs: c.RegistryURL, LookUpOnly: !c.RegistryAutoRegister, Timeout: c.NetworkTimeout, Observe: observe.Registry,
		TLS: kafka.TLS{CAFile: c.RegistryCaFile, CertFile: c.RegistryCertFile, KeyFile: c.RegistryKeyFile},
		Credentials: func() (user, password string, err error) {
			fresh, err := c.Reread() // secrets in files may have been replaced
			if err != nil {
				return "", "", fmt.Errorf("reading the registry's credentials: %w", err)
			}
			return fresh.RegistryUsername, string(fresh.RegistryPassword), nil
		},
	}
	if err := r.Open(); err != nil {
		return nil, err
	}
	return &r, nil
}

// PinKeys makes every encoder of o write keys with a schema id, unless the id is 0.
func PinKeys(o *bridge.Options, id int) {
	if id == 0 {
		return
	}
	encoder := o.Encoder
	o.Encoder = func(ctx context.Context, topic string) (*envelope.Encoder, error) {
		e, err := encoder(ctx, topic)
		if err == nil {
			e.PinKey(id)
		}
		return e, err
	}
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
