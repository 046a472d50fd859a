package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
)

// Registry is a schema registry that speaks Confluent's protocol. Open it before use.
type Registry struct {
	URLs       []string // of the same registry, tried in turn
	LookUpOnly bool     // never register
	Timeout    time.Duration
	// CA, Cert and Key are files (PEM): who signs the registry's certificate ("": the system's), and ours ("": none).
	CA, Cert, Key string
	// Credentials are asked for with each request: a user and password, or a token, or nothing.
	Credentials func() (user, password, token string, err error)

	clients []*sr.Client // by URL: one of several would be tried again only where nothing answers
}

// SchemaError is a schema that the registry does not take, or does not have. Trying again does not help.
type SchemaError struct {
	Subject string
	Reason  string // the registry's own words
	Do      string
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("the registry says: %s. %s", e.Reason, e.Do)
}

// Open reads the certificates.
func (r *Registry) Open() error {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if r.CA != "" {
		pem, err := os.ReadFile(r.CA)
		if err != nil {
			return fmt.Errorf("reading the registry's CA: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("reading the registry's CA: %s has no certificate", r.CA)
		}
	}
	if r.Cert != "" {
		// Read with each handshake: certificates are renewed.
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c, err := tls.LoadX509KeyPair(r.Cert, r.Key)
			return &c, err
		}
		if _, err := tls.LoadX509KeyPair(r.Cert, r.Key); err != nil {
			return fmt.Errorf("reading our certificate for the registry: %w", err)
		}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = conf
	for _, url := range r.URLs {
		cl, err := sr.NewClient(sr.URLs(url), sr.UserAgent("blobfeed-bridge"), sr.HTTPClient(&http.Client{Transport: transport, Timeout: r.Timeout}), sr.PreReq(r.authorize))
		if err != nil {
			return fmt.Errorf("creating the registry's client: %w", err)
		}
		r.clients = append(r.clients, cl)
	}
	return nil
}

func (r *Registry) authorize(req *http.Request) error {
	if r.Credentials == nil {
		return nil
	}
	user, password, token, err := r.Credentials()
	switch {
	case err != nil:
		return err
	case token != "":
		req.Header.Set("Authorization", "Bearer "+token)
	case user != "":
		req.SetBasicAuth(user, password)
	}
	return nil
}

// ID returns the id of an Avro schema in a subject, and registers it there if it may. The text goes as it is: registries
// differ in what they take for the same schema. An error that is no SchemaError may pass.
func (r *Registry) ID(ctx context.Context, subject, schema string) (int, error) {
	var errs []error
	for _, cl := range r.clients {
		id, err := r.id(ctx, cl, subject, sr.Schema{Schema: schema, Type: sr.TypeAvro})
		if err == nil {
			return id, nil
		}
		var refused *SchemaError
		if errors.As(err, &refused) {
			return 0, err
		}
		errs = append(errs, err)
	}
	return 0, errors.Join(errs...)
}

func (r *Registry) id(ctx context.Context, cl *sr.Client, subject string, s sr.Schema) (int, error) {
	var id int
	var err error
	if r.LookUpOnly {
		var found sr.SubjectSchema
		found, err = cl.LookupSchema(ctx, subject, s)
		id = found.ID
	} else {
		id, err = cl.RegisterSchema(ctx, subject, s, -1, -1)
	}
	var answer *sr.ResponseError
	if !errors.As(err, &answer) {
		return id, err
	}
	refused := &SchemaError{Subject: subject, Reason: answer.Error()}
	switch answer.StatusCode {
	case http.StatusNotFound:
		if answer.ErrorCode == 0 {
			refused.Do = "That is no answer of a registry: see BRIDGE_REGISTRY_URL, which may need a path"
		} else {
			refused.Do = "Register the schema that bridge config --format schemas prints, or set BRIDGE_REGISTRY_AUTO_REGISTER=true"
		}
	case http.StatusConflict:
		refused.Do = "Set back what changed the schema, or write to another BRIDGE_TOPIC under another BRIDGE_NAME, or, if all readers can live with it, lower the subject's compatibility"
	case http.StatusUnprocessableEntity:
		refused.Do = "Set back what changed the schema"
	default: // the registry, or what is in front of it, is not well; or credentials that may be renewed
		return 0, fmt.Errorf("%s answers %d: %w", answer.URL, answer.StatusCode, err)
	}
	return 0, refused
}
