package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/config"
	"blobfeed/internal/kafka"
)

// asked is told of requests to the schema registry; nil tells nobody.
type asked func(op string, status int, took time.Duration, known int)

// output turns settings into how records are written, to which topics, and what makes the encoder of each.
func output(c *config.Config, account string, asked asked) (
	record envelope.Options, topics *envelope.Topics, encoder func(context.Context, string) (*envelope.Encoder, error), err error,
) {
	record, problems := recordOptions(c)
	topics, err = envelope.NewTopics(c.Topic, account)
	if err := errors.Join(append(problems, err)...); err != nil {
		return record, nil, nil, err
	}
	record.Account = account
	registry, err := registry(c, asked)
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

// refusedError is a schema that the registry does not take or have. To the engine it is a matter of the settings, where
// all records need it. With a template it is one of many topics, whose schema somebody may register yet: it holds the
// shard that has the topic's events, and not the others.
type refusedError struct{ error }

func (e *refusedError) Unwrap() []error {
	return []error{e.error, &bridge.SettingsError{Problem: e.Error()}}
}

// registry returns the client of the schema registry, nil where none is needed.
func registry(c *config.Config, asked asked) (*kafka.Registry, error) {
	if !c.Registry() {
		return nil, nil
	}
	r := kafka.Registry{
		URLs: c.RegistryURL, LookUpOnly: !c.RegistryAutoRegister, Timeout: c.NetworkTimeout, Observe: asked,
		TLS: kafka.TLS{CAFile: c.RegistryCaFile, CertFile: c.RegistryCertFile, KeyFile: c.RegistryKeyFile},
		Credentials: func() (user, password, token string, err error) {
			fresh, err := c.Reread() // secrets in files may have been replaced
			if err != nil {
				return "", "", "", fmt.Errorf("reading the registry's credentials: %w", err)
			}
			return fresh.RegistryUsername, string(fresh.RegistryPassword), string(fresh.RegistryToken), nil
		},
	}
	if err := r.Open(); err != nil {
		return nil, err
	}
	return &r, nil
}
