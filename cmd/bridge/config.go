package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"blobfeed/envelope"
	"blobfeed/internal/config"
	"blobfeed/internal/ops"
	"blobfeed/internal/setup"
)

func configVerb(_ context.Context, env config.Env, args []string, stdout, stderr io.Writer) error {
	usage := "[--output text|json|yaml|env] | --format acls|strimzi|schemas|markdown"
	fs := flags(env, "config", usage, stdout, func(w io.Writer) {
		fmt.Fprint(w, "\nPrints the settings in force and where they come from, secrets masked, "+
			"and the problems in them.\n"+
			"With --output yaml, prints them as a settings file for --config; with env, as a file of variables.\n"+
			"With --format, prints what the bridge needs under these settings: a script with permissions and\n"+
			"topics (acls), resources for Strimzi, or Avro schemas; or the reference of all settings (markdown).\n")
	})
	format := fs.String("format", "",
		"acls, strimzi; schemas: one JSON document per line; markdown: the reference")
	shape := fs.String("output", "text", "text; json: one document per line; yaml: a settings file; env: variables")
	if err := parse(fs, args); err != nil {
		return err
	}
	switch *format {
	case "":
		return effective(env, *shape, stdout)
	case "markdown":
		return config.Markdown(stdout)
	case "schemas":
		return schemas(env, stdout, stderr)
	case "acls":
		return needed(env, (*setup.Needs).ACLs, stdout)
	case "strimzi":
		return needed(env, (*setup.Needs).Strimzi, stdout)
	}
	return &usageError{fmt.Errorf("--format %s: want acls, strimzi, schemas or markdown", *format)}
}

// needed writes what the bridge needs.
func needed(env config.Env, write func(*setup.Needs, io.Writer) error, stdout io.Writer) error {
	c, err := load(env.Load(false))
	if err != nil {
		return err
	}
	n, err := setup.NeedsOf(c)
	if err != nil {
		return &settingsError{err}
	}
	var text bytes.Buffer
	if err := write(n, &text); err != nil {
		return &settingsError{err}
	}
	_, err = text.WriteTo(stdout)
	return err
}

// schemas prints the schemas to register if the bridge must not register any.
func schemas(env config.Env, stdout, stderr io.Writer) error {
	c, err := load(env.Load(false))
	if err != nil {
		return err
	}
	record, topics, _, err := setup.Output(c, "", setup.Observe{})
	if err != nil {
		return &settingsError{err}
	}
	name, ok := topics.Constant()
	if !ok {
		return &settingsError{c.Problem("TOPIC", "it makes many topics: set it to the name of one of them")}
	}
	record.Topic = name
	subjects, err := envelope.Schemas(record)
	if err != nil {
		return &settingsError{err}
	}
	if len(subjects) == 0 {
		fmt.Fprintln(stderr, "bridge: these settings need no schemas, as keys and values are JSON or text; "+
			"BRIDGE_FORMAT=avro or BRIDGE_KEY_FORMAT=avro needs some")
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

// effective prints the settings in force, also those that have problems.
func effective(env config.Env, shape string, stdout io.Writer) error {
	if f, err := setup.LoadFleet(env); f != nil || err != nil {
		return effectiveFleet(f, err, shape, stdout)
	}
	var show func(*config.Config) error
	switch shape {
	case "text":
		show = func(c *config.Config) error {
			tw := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
			for _, e := range c.Effective() {
				fmt.Fprintf(tw, "%s\t%s\t%s\n", e.Name, cmp.Or(e.Value, "-"), e.From)
			}
			return tw.Flush()
		}
	case "json":
		show = func(c *config.Config) error {
			for _, e := range c.Effective() {
				if err := json.NewEncoder(stdout).Encode(e); err != nil {
					return err
				}
			}
			return nil
		}
	case "yaml":
		show = func(c *config.Config) error { return c.YAML(stdout) }
	case "env":
		show = func(c *config.Config) error { return c.Env(stdout) }
	default:
		return &usageError{fmt.Errorf("--output %s: want text, json, yaml or env", shape)}
	}
	c, problems := setup.Examined(env.Load(true))
	if err := show(c); err != nil {
		return err
	}
	if problems != nil {
		return invalidSettings(problems)
	}
	return nil
}

// effectiveFleet prints the settings of all bridges that have no problems, and then the problems.
func effectiveFleet(f *config.Fleet, err error, shape string, stdout io.Writer) error {
	if err != nil {
		return invalidSettings(err)
	}
	switch shape {
	case "text":
		err = fleetText(f, stdout)
	case "json":
		err = fleetJSON(f, stdout)
	default:
		return &usageError{fmt.Errorf("--output %s: choose one of the bridges of %s with BRIDGE_NAME", shape, f.Path)}
	}
	if err != nil {
		return err
	}
	if problems := f.Err(); problems != nil {
		return invalidSettings(problems)
	}
	return nil
}

// fleetText prints the common settings, and of each bridge those that differ from them.
func fleetText(f *config.Fleet, stdout io.Writer) error {
	tw := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	row := func(e config.Effective) { fmt.Fprintf(tw, "%s\t%s\t%s\n", e.Name, cmp.Or(e.Value, "-"), e.From) }
	common := f.Common.Effective()
	for _, e := range common {
		if e.Name != config.Prefix+"_NAME" {
			row(e)
		}
	}
	for _, c := range f.Bridges {
		fmt.Fprintf(tw, "\nbridge %s\n", c.Name)
		for i, e := range c.Effective() {
			if e.Value != common[i].Value || e.From != common[i].From {
				row(e)
			}
		}
	}
	return tw.Flush()
}

// fleetJSON prints all settings of each bridge.
func fleetJSON(f *config.Fleet, stdout io.Writer) error {
	out := json.NewEncoder(stdout)
	for _, c := range f.Bridges {
		for _, e := range c.Effective() {
			if err := out.Encode(struct {
				Bridge string `json:"bridge"`
				config.Effective
			}{c.Name, e}); err != nil {
				return err
			}
		}
	}
	return nil
}

func metricsVerb(_ context.Context, _ config.Env, args []string, stdout, _ io.Writer) error {
	fs := flags(nil, "metrics", "[--format text|markdown]", stdout, nil)
	format := fs.String("format", "text", "text or markdown")
	if err := parse(fs, args); err != nil {
		return err
	}
	if *format != "text" && *format != "markdown" {
		return &usageError{fmt.Errorf("--format %s: want text or markdown", *format)}
	}
	return ops.WriteReference(stdout, *format == "markdown")
}
