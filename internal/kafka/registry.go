package kafka

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"blobfeed/internal/outbound"
	"blobfeed/internal/plain"
)

// Registry is a schema registry that speaks Confluent's protocol. Open it before use.
type Registry struct {
	URLs       []string // of the same registry, tried in turn
	LookUpOnly bool     // never register
	Timeout    time.Duration
	TLS        TLS // for https
	// Credentials are asked for with each request: a user and password, or a token, or nothing.
	Credentials func() (user, password, token string, err error)

	// Observe is told of every request for an id: op is register or lookup, status 0 where there was no answer, known how many
	// ids are kept by now. Nil: nobody.
	Observe func(op string, status int, took time.Duration, known int)

	ids     *schemaIDs   // nobody asks twice
	clients []*sr.Client // by URL: one of several would be tried again only where nothing answers
}

// maxAnswer bounds the body of an answer of a registry or a token server: real ones are below 100 KiB.
const maxAnswer = 1 << 20

type schemaIDs struct {
	mu sync.Mutex
	of map[registered]int
}

type registered struct{ subject, schema string }

// SchemaError is a schema that the registry does not take, or does not have. Trying again does not help.
type SchemaError struct {
	Subject string
	Missing bool   // it does not have it
	Foreign bool   // the answer is not a registry's
	Reason  string // the registry's own words
	Do      string
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("the registry says: %s. %s", e.Reason, e.Do)
}

// Open refuses files that can't be read.
func (r *Registry) Open() error {
	conf, err := r.TLS.Config()
	if err != nil {
		return fmt.Errorf("opening the schema registry: %w", err)
	}
	r.ids = &schemaIDs{of: map[registered]int{}}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialTLSContext = dialer(&r.TLS, r.Timeout)
	transport.TLSClientConfig = conf // behind a proxy, which net/http dials itself: as the files were at the start
	client := &http.Client{Transport: outbound.Guard(transport, maxAnswer), Timeout: r.Timeout}
	for _, url := range r.URLs {
		cl, err := sr.NewClient(sr.URLs(url), sr.UserAgent("blobfeed-bridge"), sr.HTTPClient(client),
			sr.PreReq(r.authorize))
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

// ID returns the id of an Avro schema in a subject, and registers it there if it may. It is kept. The text goes as it is: registries
// differ in what they take for the same schema. An error that is no SchemaError may pass.
func (r *Registry) ID(ctx context.Context, subject, schema string) (int, error) {
	r.ids.mu.Lock()
	id, ok := r.ids.of[registered{subject, schema}]
	r.ids.mu.Unlock()
	if ok {
		return id, nil
	}
	var errs []error
	foreign := 0
	for _, cl := range r.clients {
		id, err := r.id(ctx, cl, subject, schema)
		if err == nil {
			return id, nil
		}
		var refused *SchemaError
		switch {
		case !errors.As(err, &refused):
		case !refused.Foreign:
			return 0, err
		default:
			foreign++
		}
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	if 0 < foreign && foreign < len(errs) { // a registry behind another URL may be well again soon
		err = &temporaryError{err}
	}
	return 0, err
}

// temporaryError hides the types of an error by which a caller would take it for good.
type temporaryError struct{ err error }

func (e *temporaryError) Error() string { return e.err.Error() }

func (r *Registry) id(ctx context.Context, cl *sr.Client, subject, schema string) (id int, err error) {
	s := sr.Schema{Schema: schema, Type: sr.TypeAvro}
	op, began := "register", time.Now()
	if r.LookUpOnly {
		op = "lookup"
		var found sr.SubjectSchema
		found, err = cl.LookupSchema(ctx, subject, s)
		id = found.ID
	} else {
		id, err = cl.RegisterSchema(ctx, subject, s, -1, -1)
	}
	var answer *sr.ResponseError
	errors.As(err, &answer)
	r.note(op, registered{subject, schema}, id, err, answer, time.Since(began))
	if answer == nil {
		return id, err
	}
	refused := &SchemaError{Subject: subject, Reason: plain.Line(answer.Error())}
	switch answer.StatusCode {
	case http.StatusNotFound:
		if !knows(answer) {
			refused.Foreign = true
			refused.Do = "That is no answer of a registry: see BRIDGE_REGISTRY_URL, which may need a path"
		} else {
			refused.Missing = true
			refused.Do = "Register the schema that bridge config --format schemas prints, or set BRIDGE_REGISTRY_AUTO_REGISTER=true"
		}
	case http.StatusConflict:
		refused.Do = "Set back what changed the schema, or write to another BRIDGE_TOPIC under another BRIDGE_NAME, or, if all readers can live with it, lower the subject's compatibility"
	case http.StatusUnprocessableEntity:
		refused.Do = "Set back what changed the schema"
	default: // the registry, or what is in front of it, is not well; or credentials that may be renewed
		answer.Message, answer.Raw = plain.Line(answer.Error()), nil // of err: it is kept and logged
		return 0, fmt.Errorf("%s answers %d: %w", answer.URL, answer.StatusCode, err)
	}
	return 0, refused
}

// knows reports whether a 404 is about a subject, version or schema, whose codes are 404xx. A web server gives none,
// and
// that of a registry repeats the status where it does not know the path.
func knows(answer *sr.ResponseError) bool {
	return answer.ErrorCode != 0 && answer.ErrorCode != http.StatusNotFound
}

// Schema returns the schema of an id, as a reader of a value asks for it; "" if there is none.
func (r *Registry) Schema(ctx context.Context, id int) (string, error) {
	errs := []error{errors.New("no registry is set")}
	for _, cl := range r.clients {
		s, err := cl.SchemaByID(ctx, id)
		if err == nil {
			return s.Schema, nil
		}
		var answer *sr.ResponseError
		if errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound && knows(answer) {
			return "", nil
		}
		errs[0] = fmt.Errorf("reading schema %d: %w", id, err)
	}
	return "", errs[0]
}

// note keeps an id, and tells of the request.
func (r *Registry) note(op string, s registered, id int, err error, answer *sr.ResponseError, took time.Duration) {
	r.ids.mu.Lock()
	status := 0
	switch {
	case err == nil:
		status = http.StatusOK
		r.ids.of[s] = id
	case answer != nil:
		status = answer.StatusCode
	}
	known := len(r.ids.of)
	r.ids.mu.Unlock()
	if r.Observe != nil {
		r.Observe(op, status, took, known)
	}
}
