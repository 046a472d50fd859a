package kafka

import (
	"context"
	"errors"
	"net/http"

	"github.com/twmb/franz-go/pkg/sr"
)

// Endpoint is one address of the registry. Its methods change nothing there.
type Endpoint struct {
	URL string // without what may be a secret
	cl  *sr.Client
}

// Endpoints returns the addresses in the order in which they are tried.
func (r *Registry) Endpoints() (all []Endpoint) {
	for i, cl := range r.clients {
		all = append(all, Endpoint{redactURL(r.URLs[i]), cl})
	}
	return all
}

// Answers asks for the subjects: every registry answers that, and it needs no right to a subject.
func (e *Endpoint) Answers(ctx context.Context) error {
	_, err := e.cl.Subjects(ctx)
	return err
}

// Find returns the id of an Avro schema in a subject.
func (e *Endpoint) Find(ctx context.Context, subject, schema string) (id int, err error) {
	found, err := e.cl.LookupSchema(ctx, subject, sr.Schema{Schema: schema, Type: sr.TypeAvro})
	return found.ID, err
}

// Takes reports whether a subject would take an Avro schema, and the registry's reasons if not.
func (e *Endpoint) Takes(ctx context.Context, subject, schema string) (takes bool, reasons []string, err error) {
	fit, err := e.cl.CheckCompatibility(ctx, subject, -1, sr.Schema{Schema: schema, Type: sr.TypeAvro})
	return fit.Is, fit.Messages, err
}

// Missing reports whether a registry says that a subject, version or schema does not exist.
func Missing(err error) bool {
	var answer *sr.ResponseError
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound && knows(answer)
}
