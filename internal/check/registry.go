package check

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/twmb/franz-go/pkg/sr"

	"blobfeed/envelope"
	"blobfeed/internal/kafka"
)

// registry checks the schema registry, if records need one.
func (b *Bridge) registry(ctx context.Context, fs *Findings) error {
	if b.Registry == nil {
		return nil
	}
	if len(b.Registry.URLs) == 0 {
		fs.Add("registry", Failed, "BRIDGE_REGISTRY_URL is not set, and Avro needs a schema registry",
			"set it to http://host:port or https://host:port")
		return nil
	}
	var subjects []envelope.Subject
	if name, ok := b.Options.Topics.Names.Constant(); ok {
		record := b.Record
		record.Topic = name
		var err error
		if subjects, err = envelope.Schemas(record); err != nil {
			return err
		}
	}
	fs.registry(ctx, b.Registry, subjects)
	return nil
}

// registry tries what a bridge does with the schema registry, and registers nothing: reach, credentials, and whether
// the subjects have the schemas, or would take them.
func (fs *Findings) registry(ctx context.Context, r *kafka.Registry, subjects []envelope.Subject) {
	var alive *kafka.Endpoint
	all := r.Endpoints()
	errs := make([]error, len(all))
	for i := range all {
		// Every registry answers this, and it needs no right to a subject.
		if _, errs[i] = all[i].Subjects(ctx); errs[i] == nil {
			alive = &all[i]
		}
	}
	down := Failed
	if alive != nil {
		down = Warning // run uses another address
	}
	for i, err := range errs {
		if err != nil {
			do := kafka.RegistryAdvice(err)
			if failed, is := errors.AsType[*url.Error](err); is { // it names the address again
				err = failed.Err
			}
			if answer, is := errors.AsType[*sr.ResponseError](err); is && len(answer.Raw) == 0 {
				err = fmt.Errorf("answered %d", answer.StatusCode)
			}
			fs.Add("registry", down, fmt.Sprintf("%s: %v", all[i].URL, err), do)
			continue
		}
		fs.Add("registry", OK, all[i].URL+" answers, credentials are accepted", "")
	}
	if alive == nil {
		return
	}
	for _, s := range subjects {
		fs.schema(ctx, alive, s, r.LookUpOnly)
	}
}

// schema looks for one schema.
func (fs *Findings) schema(ctx context.Context, e *kafka.Endpoint, s envelope.Subject, lookUpOnly bool) {
	schema := sr.Schema{Schema: s.Schema, Type: sr.TypeAvro}
	found, err := e.LookupSchema(ctx, s.Name, schema)
	switch {
	case err == nil:
		fs.Add("schema", OK, fmt.Sprintf("subject %s has the schema, id %d", s.Name, found.ID), "")
		return
	case !kafka.Missing(err):
		fs.Add("schema", Failed, fmt.Sprintf("looking up the schema of %s: %v", s.Name, err), kafka.RegistryAdvice(err))
		return
	case lookUpOnly:
		fs.Add("schema", Failed, fmt.Sprintf("subject %s does not have the schema", s.Name),
			"register what bridge config --format schemas prints, or set BRIDGE_REGISTRY_AUTO_REGISTER=true")
		return
	}
	fit, err := e.CheckCompatibility(ctx, s.Name, -1, schema)
	switch {
	case kafka.Missing(err): // a new subject takes any schema
		fs.Add("schema", OK, fmt.Sprintf("subject %s does not exist; run registers it", s.Name), "")
	case err != nil:
		fs.Add("schema", Failed, fmt.Sprintf("asking whether %s takes the schema: %v", s.Name, err),
			kafka.RegistryAdvice(err))
	case !fit.Is:
		fs.Add("schema", Failed, fmt.Sprintf("subject %s does not take the schema: it does not fit the last one. %s",
			s.Name, strings.Join(fit.Messages, "; ")),
			"set back what changed it, or write to another BRIDGE_TOPIC under another BRIDGE_NAME, "+
				"or lower the subject's compatibility")
	default:
		fs.Add("schema", OK, fmt.Sprintf("subject %s takes the schema; run registers it", s.Name), "")
	}
}
