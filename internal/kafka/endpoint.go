package kafka

import (
	"errors"
	"net/http"

	"github.com/twmb/franz-go/pkg/sr"
)

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
	var answer *sr.ResponseError
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound && knows(answer)
}
