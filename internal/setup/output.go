package setup

import (
	"context"
	"errors"
	"fmt"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/config"
	"blobfeed/internal/kafka"
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
