package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"blobfeed/envelope"
	"blobfeed/internal/config"
	"blobfeed/internal/setup"
)

func configVerb(_ context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("config", "[--output text|json] | --format text|markdown|schemas", stderr, func(w io.Writer) {
		fmt.Fprint(w, "\nPrints the settings in force and where they come from, secrets masked, and what is wrong with them.\n"+
			"With --format, prints the reference of all settings instead, or the Avro schemas that records will have.\n")
	})
	format := fs.String("format", "", "print the reference, as text or markdown; or schemas: the Avro schemas, a JSON document a line")
	shape := fs.String("output", "text", "text, or json: a document a line")
	if err := parse(fs, args); err != nil {
		return err
	}
	switch *format {
	case "":
		return effective(*shape, stdout)
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
	c, err := load(config.Load(false))
	if err != nil {
		return err
	}
	record, topics, _, err := setup.Output(c, "", setup.Observe{})
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

// effective prints the settings in force, also those that have problems: they are what somebody wants to look at.
func effective(shape string, stdout io.Writer) error {
	asJSON, err := wantsJSON(shape)
	if err != nil {
		return err
	}
	c, problems := config.Load(true)
	if c == nil {
		return &usageError{problems}
	}
	tw := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, e := range c.Effective() {
		var err error
		if asJSON {
			err = json.NewEncoder(stdout).Encode(e)
		} else {
			_, err = fmt.Fprintf(tw, "%s\t%s\t%s\n", e.Name, cmp.Or(e.Value, "-"), e.From)
		}
		if err != nil {
			return err
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if problems != nil {
		return &usageError{fmt.Errorf("settings:\n%w", problems)}
	}
	return nil
}
