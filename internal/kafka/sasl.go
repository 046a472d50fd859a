package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"blobfeed/internal/outbound"
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
			return plain.Auth{User: user, Pass: pass}, ofConnection(err)
		}), nil
	case "SCRAM-SHA-256":
		return scram.Sha256(s.scram), nil
	case "SCRAM-SHA-512":
		return scram.Sha512(s.scram), nil
	case "OAUTHBEARER":
		return oauth.Oauth(func(ctx context.Context) (oauth.Auth, error) {
			token, err := s.Token(ctx)
			if err != nil {
				return oauth.Auth{}, ofConnection(&TokenError{err})
			}
			text.Hide(token)
			return oauth.Auth{Token: token, Extensions: s.Extensions}, nil
		}), nil
	}
	return nil, fmt.Errorf("invalid SASL mechanism %q: want one of %s", s.Mechanism, strings.Join(Mechanisms, ", "))
}

func (s *SASL) scram(context.Context) (scram.Auth, error) {
	user, pass, err := s.Credentials()
	return scram.Auth{User: user, Pass: pass}, ofConnection(err)
}

// TokenError is a failure to get the token for a connection.
type TokenError struct{ Err error }

func (e *TokenError) Error() string { return "getting a token for Kafka: " + e.Err.Error() }
func (e *TokenError) Unwrap() error { return e.Err }

// ClientCredentials gets tokens from an OAuth server, with the grant of RFC 6749, section 4.4. A token is used again
// until a fifth of its life is left.
type ClientCredentials struct {
	URL    string
	Client func() (id, secret string, err error) // called for every token: a file may have been replaced
	Scope  string

	mu    sync.Mutex // held during a request, so that one request serves all connections
	token string
	renew time.Time
}

// tokenTimeout bounds a request for a token.
const tokenTimeout = 10 * time.Second

// Token is a Token.
func (c *ClientCredentials) Token(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	start := time.Now()
	if c.token != "" && start.Before(c.renew) {
		return c.token, nil
	}
	token, life, err := c.request(ctx)
	if err != nil {
		return "", fmt.Errorf("asking %s: %w", redactURL(c.URL), err)
	}
	c.token, c.renew = token, start.Add(life*4/5)
	return token, nil
}

func (c *ClientCredentials) request(ctx context.Context) (token string, life time.Duration, err error) {
	id, secret, err := c.Client()
	if err != nil {
		return "", 0, err
	}
	form := url.Values{"grant_type": {"client_credentials"}}
	if c.Scope != "" {
		form.Set("scope", c.Scope)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, tokenTimeout, errors.New("no answer in time"))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return "", 0, errors.New("the URL can't be parsed")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	req.SetBasicAuth(url.QueryEscape(id), url.QueryEscape(secret)) // as RFC 6749, section 2.3.1, has it
	resp, err := tokenClient.Do(req)
	if err != nil {
		if u, is := errors.AsType[*url.Error](err); is { // it has the URL in its text
			err = u.Err
		}
		return "", 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", 0, fmt.Errorf("reading the answer: %w", err)
	}
	var answer struct {
		Token     string      `json:"access_token"`
		ExpiresIn json.Number `json:"expires_in"` // some servers write a string
		Error     string      `json:"error"`
	}
	err = json.Unmarshal(body, &answer)
	status := fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	switch {
	case slices.Contains(tokenErrors, answer.Error):
		return "", 0, fmt.Errorf("%s: %s; the server's log says more", status, answer.Error)
	case resp.StatusCode != http.StatusOK, answer.Error != "":
		return "", 0, errors.New(status)
	case err != nil, answer.Token == "":
		return "", 0, errors.New("the answer holds no access_token")
	}
	seconds, err := answer.ExpiresIn.Int64()
	if err != nil || seconds < 0 {
		seconds = 60 // RFC 6749 only recommends that the answer has it
	}
	return answer.Token, time.Duration(min(seconds, 24*3600)) * time.Second, nil
}

// tokenErrors are the codes of RFC 6749, section 5.2. Errors repeat nothing else of a refusal: servers were
// seen to echo the Authorization header in error_description.
var tokenErrors = []string{"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client",
	"unsupported_grant_type", "invalid_scope"}

// tokenClient sends the client's secret nowhere but to the server that the settings name.
var tokenClient = &http.Client{Transport: outbound.Guard(http.DefaultTransport.(*http.Transport).Clone(), maxAnswer)}

// redactURL keeps what may be a secret out of errors.
func redactURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "the token's URL"
	}
	u.RawQuery, u.User = "", nil
	return u.String()
}
