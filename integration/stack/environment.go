package stack

import (
	"cmp"
	"context"
	"os"
	"strings"
)

// The variables that name a stack.
const (
	envKafka    = "KAFKA_BROKERS"
	envRegistry = "SCHEMA_REGISTRY_URL"
	envAzure    = "AZURE_STORAGE_CONNECTION_STRING"
)

// Get returns the stack that the environment names, and starts what it does not: one Kafka node, registry, Azurite.
// Logf may be nil.
func Get(ctx context.Context, logf func(string, ...any)) (*Stack, error) {
	return Complete(ctx, Options{Brokers: 1, Registry: true, Azurite: true}, logf)
}

// Complete returns what the environment names, and starts the rest of o.
func Complete(ctx context.Context, o Options, logf func(string, ...any)) (*Stack, error) {
	named, missing := fromEnvironment(os.Getenv, o)
	s, err := Start(ctx, missing, logf)
	if err != nil {
		return nil, err
	}
	if named.KafkaBrokers != nil {
		s.KafkaBrokers = named.KafkaBrokers
	}
	s.SchemaRegistryURL = cmp.Or(named.SchemaRegistryURL, s.SchemaRegistryURL)
	s.AzureConnectionString = cmp.Or(named.AzureConnectionString, s.AzureConnectionString)
	return s, nil
}

// fromEnvironment returns what the environment names and what of o is left to start.
func fromEnvironment(getenv func(string) string, o Options) (named *Stack, missing Options) {
	named = &Stack{}
	for b := range strings.SplitSeq(getenv(envKafka), ",") {
		if b = strings.TrimSpace(b); b != "" {
			named.KafkaBrokers = append(named.KafkaBrokers, b)
		}
	}
	named.SchemaRegistryURL = strings.TrimSpace(getenv(envRegistry))
	named.AzureConnectionString = strings.TrimSpace(getenv(envAzure))
	if named.KafkaBrokers != nil {
		o.Brokers = 0
	}
	o.Registry = o.Registry && named.SchemaRegistryURL == ""
	o.Azurite = o.Azurite && named.AzureConnectionString == ""
	return named, o
}

// Env returns the endpoints as NAME=value, as Get reads them. What the stack does not have is left out.
func (s *Stack) Env() []string {
	var env []string
	for _, e := range []struct{ name, value string }{
		{envKafka, strings.Join(s.KafkaBrokers, ",")},
		{envRegistry, s.SchemaRegistryURL},
		{envAzure, s.AzureConnectionString},
	} {
		if e.value != "" {
			env = append(env, e.name+"="+e.value)
		}
	}
	return env
}
