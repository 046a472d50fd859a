package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"blobfeed/config"
	"blobfeed/envelope"
)

func configVerb(_ context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("config", "[--format text|markdown|schemas]", stderr, nil)
	format := fs.String("format", "text", "text, markdown, or schemas: the Avro schemas that records will have, a JSON document a line")
	if err := parse(fs, args); err != nil {
		return err
	}
	switch *format {
	case "text":
		return config.Usage(stdout)
	case "markdown":
		return config.Markdown(stdout)
	case "schemas":
		return schemas(stdout)
	}
	return &usageError{fmt.Errorf("--format %s: want text, markdown or schemas", *format)}
}

// schemas prints what has to be registered where the bridge must not.
func schemas(stdout io.Writer) error {
	c, err := config.Load(false)
	if err != nil {
		return &usageError{fmt.Errorf("settings:\n%w", err)}
	}
	record, topics, _, err := output(c, "")
	if err != nil {
		return &usageError{err}
	}
	name, ok := topics.Constant()
	if !ok {
		return &usageError{errors.New("BRIDGE_TOPIC names many topics: set it to the name of one of them")}
	}
	record.Topic = name
	subjects, err := envelope.Schemas(record)
	if err != nil {
		return &usageError{err}
	}
	for _, s := range subjects {
		if err := json.NewEncoder(stdout).Encode(struct {
			Subject string `json:"subject"`
			Schema  string `json:"schema"`
		}{s.Name, s.Schema}); err != nil {
			return err
		}
	}
	return nil
}
