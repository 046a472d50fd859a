package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"blobfeed/internal/outbound"
	"blobfeed/internal/plain"
)

// Registry is a schema registry that speaks Confluent's protocol. Open it before use.
type Registry struct {
	URLs       []string // of the same registry, tried in turn
	LookUpOnly bool     // register no schema
	Timeout    time.Duration
	TLS        TLS // for https
	// Credentials is called for each request. Without a user the password is a bearer token.
	Credentials func() (user, password string, err error)

	// Observe is called after every request for an id. Op is register or lookup, status is 0 if there was no
	// answer, known is the number of ids in the cache. It may be nil.
	Observe func(op string, status int, took time.Duration, known int)

	ids     *schemaIDs   // the cache
	clients []*sr.Client // one for each URL: a client with several tries the next one only if there is no answer
}

// maxAnswer bounds the body of an answer of a registry or a token server. Real answers are below 100 KiB.
const maxAnswer = 1 << 20

type schemaIDs struct {
	mu sync.Mutex
	of map[registered]int
}

type registered struct{ subject, schema string }

// SchemaError is a schema that the registry rejects or does not have. Another attempt does not help.
type SchemaError struct {
	Subject string
	Missing bool   // the registry does not have it
	Foreign bool   // the answer is not a registry's
	Reason  string // the registry's own words
	Do      string
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("the registry says: %s. %s", e.Reason, e.Do)
}

// Open makes the clients. Files that can't be read are an error.
func (r *Registry) Open() error {
	conf, err := r.TLS.Config()
	if err != nil {
		return fmt.Errorf("opening the schema registry: %w", err)
	}
	r.ids = &schemaIDs{of: map[registered]int{}}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialTLSContext = dialer(&r.TLS, r.Timeout)
	transport.TLSClientConfig = conf // behind a proxy, which net/http dials itself: as the files were at the start
	client := &http.Client{Transport: terse{outbound.Guard(transport, maxAnswer)}, Timeout: r.Timeout}
	for _, at := range r.URLs {
		cl, err := sr.NewClient(sr.URLs(at), sr.UserAgent("blobfeed-bridge"), sr.HTTPClient(client),
			sr.PreReq(r.authorize))
		if err != nil {
			return fmt.Errorf("creating the registry's client: %w", err)
		}
		r.clients = append(r.clients, cl)
	}
	return nil
}

// terse makes a line of an error that is no registry's, such as the page of a web server: errors quote it.
type terse struct{ next http.RoundTripper }

// pageTitle is what a web page says in a few words.
var pageTitle = regexp.MustCompile(`(?is)<title[^>]*>\s*(.*?)\s*</title>`)

// RoundTrip implements http.RoundTripper.
func (t terse) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil || resp.StatusCode < http.StatusBadRequest {
		return resp, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	text := strings.TrimSpace(string(body))
	if title := pageTitle.FindStringSubmatch(text); title != nil {
		text = "a web page: " + title[1]
	}
	if !strings.HasPrefix(text, "{") {
		text, _, _ = strings.Cut(text, "\n")
		text = strings.ToValidUTF8(text[:min(len(text), 200)], "")
	}
	resp.Body = io.NopCloser(strings.NewReader(text))
	return resp, nil
}

func (r *Registry) authorize(req *http.Request) error {
	if r.Credentials == nil {
		return nil
	}
	user, password, err := r.Credentials()
	switch {
	case err != nil:
		return err
	case user != "":
		req.SetBasicAuth(user, password)
	case password != "":
		req.Header.Set("Authorization", "Bearer "+password)
	}
	return nil
}

// ID returns the id of an Avro schema in a subject, from the cache if it is there, and registers the schema if it may.
// The text is sent unchanged, since registries differ in which schemas they regard as the same. Any error but a
// SchemaError may pass.
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
		if refused, is := errors.AsType[*SchemaError](err); is {
			if !refused.Foreign {
				return 0, err
			}
			foreign++
		}
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	if 0 < foreign && foreign < len(errs) { // the registry at another URL may recover
		err = errors.New(err.Error()) // without the type by which a caller would regard it as lasting
	}
	return 0, err
}

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
	answer, _ := errors.AsType[*sr.ResponseError](err)
	r.answered(op, registered{subject, schema}, id, err, answer, time.Since(began))
	switch {
	case err == nil:
		return id, nil
	case answer == nil:
		return 0, plain.WithRemedy(readable(err), RegistryAdvice(err))
	}
	refused := &SchemaError{Subject: subject, Reason: plain.Line(answer.Error())}
	if len(answer.Raw) == 0 {
		refused.Reason = fmt.Sprintf("%d without a text", answer.StatusCode)
	}
	switch answer.StatusCode {
	case http.StatusNotFound:
		if !knows(answer) {
			refused.Foreign = true
			refused.Do = "A registry does not answer so: see BRIDGE_REGISTRY_URL, which may need a path"
		} else {
			refused.Missing = true
			refused.Do = "Register the schema that bridge config --format schemas prints, " +
				"or set BRIDGE_REGISTRY_AUTO_REGISTER=true"
		}
	case http.StatusConflict:
		refused.Do = "Set back what changed the schema, or write to another BRIDGE_TOPIC under another BRIDGE_NAME, " +
			"or, if all readers can read both, lower the subject's compatibility"
	case http.StatusUnprocessableEntity:
		refused.Do = "Set back what changed the schema"
	default: // the registry, or what is in front of it, fails; or the credentials, which may be renewed
		err = fmt.Errorf("%s answers %d: %w", answer.URL, answer.StatusCode, readable(err))
		return 0, plain.WithRemedy(readable(err), RegistryAdvice(err))
	}
	return 0, refused
}

// knows reports whether a 404 is about a subject, version or schema, whose codes are 404xx. A web server sends no code,
// and a registry repeats the status if it does not know the path.
func knows(answer *sr.ResponseError) bool {
	return answer.ErrorCode != 0 && answer.ErrorCode != http.StatusNotFound
}

// Schema returns the schema of an id; "" if there is none.
func (r *Registry) Schema(ctx context.Context, id int) (string, error) {
	errs := []error{errors.New("no registry is set")}
	for _, cl := range r.clients {
		s, err := cl.SchemaByID(ctx, id)
		if err == nil {
			return s.Schema, nil
		}
		if Missing(err) {
			return "", nil
		}
		errs[0] = plain.WithRemedy(fmt.Errorf("reading schema %d: %w", id, readable(err)), RegistryAdvice(err))
	}
	return "", errs[0]
}

// readable makes the text of an answer safe to show, and names the address of a failed request once.
func readable(err error) error {
	if failed, is := errors.AsType[*url.Error](err); is {
		return failed
	}
	if answer, is := errors.AsType[*sr.ResponseError](err); is {
		answer.Message, answer.Raw = plain.Line(answer.Error()), nil
	}
	return err
}

// answered puts an id into the cache, and reports the request.
func (r *Registry) answered(op string, s registered, id int, err error, answer *sr.ResponseError, took time.Duration) {
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

// Endpoint is one address of the registry.
type Endpoint struct {
	URL string // without what may be a secret
	*sr.Client
}

// Endpoints returns the addresses in the order in which they are tried.
func (r *Registry) Endpoints() (all []Endpoint) {
	for i, cl := range r.clients {
		all = append(all, Endpoint{redactURL(r.URLs[i]), cl})
	}
	return all
}

// Missing reports whether a registry says that a subject, version or schema does not exist.
func Missing(err error) bool {
	answer, is := errors.AsType[*sr.ResponseError](err)
	return is && answer.StatusCode == http.StatusNotFound && knows(answer)
}
