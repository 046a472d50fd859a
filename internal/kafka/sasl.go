package kafka

import (
	"context"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	text "blobfeed/internal/plain"
)

// Mechanisms are the ways to authenticate, by Kafka's names.
var Mechanisms = []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"}

// SASL authenticates the bridge. Credentials and tokens are read for every connection, so replacing them needs no
// restart.
type SASL struct {
	Mechanism   string                                // one of Mechanisms
	Credentials func() (user, pass string, err error) // for all but OAUTHBEARER
	Token       Token                                 // for OAUTHBEARER
	Extensions  map[string]string                     // sent along with tokens
}

// Token returns a bearer token that is valid now. It is called from many goroutines.
type Token func(context.Context) (string, error)

func (s *SASL) mechanism() (sasl.Mechanism, error) {
	switch s.Mechanism {
	case "PLAIN":
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			user, pass, err := s.Credentials()
			return plain.Auth{User: user, Pass: pass}, err
		}), nil
	case "SCRAM-SHA-256":
		return scram.Sha256(s.scram), nil
	case "SCRAM-SHA-512":
		return scram.Sha512(s.scram), nil
	case "OAUTHBEARER":
		return oauth.Oauth(func(ctx context.Context) (oauth.Auth, error) {
			token, err := s.Token(ctx)
			if err != nil {
				return oauth.Auth{}, &TokenError{err}
			}
			text.Hide(token)
			return oauth.Auth{Token: token, Extensions: s.Extensions}, nil
		}), nil
	}
	return nil, fmt.Errorf("invalid SASL mechanism %q: want one of %s", s.Mechanism, strings.Join(Mechanisms, ", "))
}

func (s *SASL) scram(context.Context) (scram.Auth, error) {
	user, pass, err := s.Credentials()
	return scram.Auth{User: user, Pass: pass}, err
}

// TokenError is a failure to get the token for a connection.
type TokenError struct{ Err error }

func (e *TokenError) Error() string { return "getting a token for Kafka: " + e.Err.Error() }
func (e *TokenError) Unwrap() error { return e.Err }
