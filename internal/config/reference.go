package config

import (
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"
	"text/tabwriter"
)

type setting struct {
	name, def, desc string
	group           string // of the settings from here on, "" for that of the one before
	typ             reflect.Type
	field           int // its index
}

var (
	words = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	runs  = regexp.MustCompile(`([A-Z])([A-Z][a-z])`)
)

// describe reads the struct's tags, in the order of the fields, with the names that envconfig gives them.
func describe(t reflect.Type) (settings []setting) {
	for f := range t.Fields() {
		if !f.IsExported() {
			continue
		}
		name := f.Tag.Get("envconfig")
		if name == "" {
			name = f.Name
			if f.Tag.Get("split_words") == "true" {
				name = words.ReplaceAllString(runs.ReplaceAllString(name, "${1}_${2}"), "${1}_${2}")
			}
		}
		settings = append(settings, setting{
			name: Prefix + "_" + strings.ToUpper(name), def: f.Tag.Get("default"), desc: f.Tag.Get("desc"), group: f.Tag.Get("group"), typ: f.Type, field: f.Index[0],
		})
	}
	return settings
}

// Default returns the default of the setting of that name, without the prefix.
func Default(name string) string {
	for _, s := range describe(reflect.TypeFor[Config]()) {
		if s.name == Prefix+"_"+name {
			return s.def
		}
	}
	return ""
}

// Usage writes the settings for a terminal.
func Usage(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range describe(reflect.TypeFor[Config]()) {
		if s.group != "" {
			fmt.Fprintf(tw, "\n%s\n", s.group)
		}
		fmt.Fprintf(tw, "  %s\t%s\t%s\n", s.name, s.def, s.desc)
	}
	fmt.Fprint(tw, "\nTraces are off unless the standard OTEL_* variables ask for them: OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318\n")
	return tw.Flush()
}

// Markdown writes docs/configuration.md.
func Markdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString(`# Configuration

All settings are environment variables. A secret can also be given as ` + "`<NAME>_FILE`" + `, the path of a file that holds it.
Every problem is reported at once; the program then ends with exit code 2. Lists are separated by commas; spaces around items do not count. Made from the source by ` + "`make docs`" + `.
Traces have the standard variables ` + "`OTEL_*`" + `: [operations.md](operations.md#traces).

*frozen*: can't change while records exist; the bridge refuses to start and says what to do.

Only ` + "`BRIDGE_SOURCE_URL` and `BRIDGE_KAFKA_BROKERS`" + ` are required.
`)
	for _, s := range describe(reflect.TypeFor[Config]()) {
		if s.group != "" {
			fmt.Fprintf(&b, "\n## %s\n\n| setting | default | meaning |\n|---|---|---|\n", s.group)
		}
		def := ""
		if s.def != "" {
			def = "`" + s.def + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.name, def, strings.ReplaceAll(s.desc, "|", "\\|"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
