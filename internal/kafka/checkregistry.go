package kafka

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/twmb/franz-go/pkg/sr"

	"blobfeed/internal/check"
	"blobfeed/internal/outbound"
)

// Schema is what a subject has to take.
type Schema struct{ Subject, Text string }

// CheckRegistry tries what a bridge does with the schema registry, and registers nothing: reach, credentials, and
// whether the subjects have the schemas, or would take them.
func CheckRegistry(ctx context.Context, r *Registry, schemas []Schema, fs *check.Findings) {
	var alive *sr.Client
	errs := make([]error, len(r.clients))
	for i, cl := range r.clients {
		// The one question that every registry answers, and that needs no right to a subject.
		if _, errs[i] = cl.Subjects(ctx); errs[i] == nil {
			alive = cl
		}
	}
	down := check.Failed
	if alive != nil {
		down = check.Warning // run passes over it
	}
	for i, err := range errs {
		if err != nil {
			fs.Add("registry", down, fmt.Sprintf("%s: %v", redactURL(r.URLs[i]), err), registryAdvice(err))
			continue
		}
		fs.Add("registry", check.OK, redactURL(r.URLs[i])+" answers, credentials are accepted", "")
	}
	if alive == nil {
		return
	}
	for _, s := range schemas {
		r.look(ctx, alive, s, fs)
	}
}

// look asks for one schema.
func (r *Registry) look(ctx context.Context, cl *sr.Client, s Schema, fs *check.Findings) {
	schema := sr.Schema{Schema: s.Text, Type: sr.TypeAvro}
	found, err := cl.LookupSchema(ctx, s.Subject, schema)
	switch {
	case err == nil:
		fs.Add("schema", check.OK, fmt.Sprintf("subject %s has the schema, id %d", s.Subject, found.ID), "")
		return
	case !missing(err):
		fs.Add("schema", check.Failed, fmt.Sprintf("looking up the schema of %s: %v", s.Subject, err), registryAdvice(err))
		return
	case r.LookUpOnly:
		fs.Add("schema", check.Failed, fmt.Sprintf("subject %s does not have the schema", s.Subject),
			"register what bridge config --format schemas prints, or set BRIDGE_REGISTRY_AUTO_REGISTER=true")
		return
	}
	fit, err := cl.CheckCompatibility(ctx, s.Subject, -1, schema)
	switch {
	case missing(err): // a new subject takes anything
		fs.Add("schema", check.OK, fmt.Sprintf("subject %s does not exist; run registers it", s.Subject), "")
	case err != nil:
		fs.Add("schema", check.Failed, fmt.Sprintf("asking whether %s takes the schema: %v", s.Subject, err), registryAdvice(err))
	case !fit.Is:
		fs.Add("schema", check.Failed, fmt.Sprintf("subject %s does not take the schema: it does not fit the last one. %s", s.Subject, strings.Join(fit.Messages, "; ")),
			"set back what changed it, or write to another BRIDGE_TOPIC under another BRIDGE_NAME, or lower the subject's compatibility")
	default:
		fs.Add("schema", check.OK, fmt.Sprintf("subject %s takes the schema; run registers it", s.Subject), "")
	}
}

// missing reports whether a registry says that a subject, version or schema does not exist.
func missing(err error) bool {
	var answer *sr.ResponseError
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound && knows(answer)
}

func registryAdvice(err error) string {
	var answer *sr.ResponseError
	var elsewhere *outbound.RedirectError
	if errors.As(err, &elsewhere) {
		return "set BRIDGE_REGISTRY_URL to the registry's own address; redirects are not followed"
	}
	if !errors.As(err, &answer) {
		return "see the error: address, network, certificates (BRIDGE_REGISTRY_URL, BRIDGE_REGISTRY_CA_FILE)"
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "see BRIDGE_REGISTRY_USERNAME, BRIDGE_REGISTRY_PASSWORD and BRIDGE_REGISTRY_TOKEN, and what they may do"
	case http.StatusNotFound:
		return "see BRIDGE_REGISTRY_URL: it may need a path, such as /apis/ccompat/v7"
	}
	return "look at the registry, or what is in front of it"
}
