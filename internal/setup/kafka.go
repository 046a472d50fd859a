package setup

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/config"
	"blobfeed/internal/kafka"
	"blobfeed/internal/plain"
	"blobfeed/internal/status"
	"blobfeed/offsets"
	"blobfeed/source/azure"
)

// Kafka returns how to reach the brokers that the settings name. Id is the client's name in their logs.
func Kafka(c *config.Config, id string, buffered int) (kafka.Client, error) {
	k := kafka.Client{
		Brokers: c.KafkaBrokers, ID: id, Compression: c.KafkaCompression, Buffered: buffered,
		DialTimeout: c.NetworkTimeout, BatchBytes: batchLimit(memoryLimit()),
	}
	if c.KafkaTLSEnabled {
		k.TLS = &kafka.TLS{CAFile: c.KafkaTLSCaFile, CertFile: c.KafkaTLSCertFile, KeyFile: c.KafkaTLSKeyFile,
			ServerName: c.KafkaTLSServerName}
	}
	if c.KafkaSASLMechanism == "" {
		return k, nil
	}
	credentials := func() (user, pass string, err error) {
		fresh, err := c.Reread()
		if err != nil {
			return "", "", err
		}
		return string(fresh.KafkaSASLUsername), string(fresh.KafkaSASLPassword), nil
	}
	k.SASL = &kafka.SASL{Mechanism: c.KafkaSASLMechanism, Credentials: credentials}
	if c.KafkaSASLMechanism != "OAUTHBEARER" {
		return k, nil
	}
	k.SASL.Extensions = map[string]string{}
	for _, pair := range c.KafkaSASLExtensions {
		name, value, _ := strings.Cut(pair, "=")
		k.SASL.Extensions[name] = value
	}
	switch {
	case c.TokenFile() != "":
		k.SASL.Token = func(context.Context) (string, error) { return config.ReadSecret(c.TokenFile()) }
	case c.EntraTokens():
		e := &entra{config: c}
		if _, err := e.credential(); err != nil {
			return k, c.Problem("KAFKA_SASL_TOKENS", "%w", err)
		}
		k.SASL.Token = e.token
	default:
		tokens := &kafka.ClientCredentials{URL: c.KafkaSASLTokens, Scope: c.KafkaSASLScope, Client: credentials}
		k.SASL.Token = tokens.Token
	}
	return k, nil
}

// entra gets tokens of Entra ID, which are kept until shortly before their end.
type entra struct {
	config *config.Config

	mu     sync.Mutex
	user   config.Text   // that cred was made with
	secret config.Secret // and this
	cred   azcore.TokenCredential
}

func (e *entra) token(ctx context.Context) (string, error) {
	cred, err := e.credential()
	if err != nil {
		return "", err
	}
	t, err := cred.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{e.config.KafkaSASLScope}})
	return t.Token, err
}

// credential replaces the credential when a file with a part of it has been replaced.
func (e *entra) credential() (azcore.TokenCredential, error) {
	fresh, err := e.config.Reread()
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cred != nil && e.user == fresh.KafkaSASLUsername && e.secret == fresh.KafkaSASLPassword {
		return e.cred, nil
	}
	identity := fresh.KafkaIdentity()
	cred, err := (&azure.Config{Auth: fresh.KafkaSASLTokens, Tenant: identity.Tenant, ClientID: identity.ClientID,
		ClientSecret: string(fresh.KafkaSASLPassword), TokenFile: identity.TokenFile, Authority: identity.Authority,
		Named: named(map[string]string{"Auth": "KAFKA_SASL_TOKENS", "ClientSecret": "KAFKA_SASL_PASSWORD"}),
	}).TokenCredential()
	if err != nil {
		return nil, err
	}
	e.cred, e.user, e.secret = cred, fresh.KafkaSASLUsername, fresh.KafkaSASLPassword
	return cred, nil
}

// StateTimeout bounds one read of the state.
const StateTimeout = 30 * time.Second

// State returns a reader of the state of the bridge that the settings name, and a function that closes it.
func State(c *config.Config) (r *status.Reader, done func(), err error) {
	client, err := Kafka(c, c.Name+"-cli", 1000)
	if err != nil {
		return nil, nil, &plain.SettingsError{Problem: err.Error()}
	}
	client.DialTimeout = min(client.DialTimeout, 5*time.Second) // the error of a connection says more than a timeout
	opts, err := client.Options()
	if err != nil {
		return nil, nil, &plain.SettingsError{Problem: err.Error()}
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, nil, &plain.SettingsError{Problem: fmt.Sprintf("creating the Kafka client: %v", err)}
	}
	r = &status.Reader{Name: c.Name, Topic: plain.StateTopic(c.Name), Admin: kadm.NewClient(cl), Client: opts,
		Brokers: c.KafkaBrokers, Beside: c.Beside()}
	if strings.HasPrefix(c.SourceURL, "file://") {
		if s, err := OpenSource(c, Observe{}); err == nil { // a report does not need it
			r.Copy, r.CopyID = s.Feed, s.ID
		}
	}
	return r, cl.Close, nil
}

// InState calls f with the state of the bridge that the settings name, and the reader that read it.
func InState(
	ctx context.Context, c *config.Config, f func(context.Context, *status.Reader, *offsets.State) error,
) error {
	r, done, err := State(c)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeoutCause(ctx, StateTimeout, status.ErrSilent)
	defer cancel()
	s, err := r.State(ctx)
	if err != nil {
		return err
	}
	return f(ctx, r, s)
}
