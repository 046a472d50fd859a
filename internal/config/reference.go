package config

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Usage writes the settings for a terminal.
func Usage(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range table {
		if s.group != "" {
			fmt.Fprintf(tw, "\n%s\n", s.group)
		}
		fmt.Fprintf(tw, "  %s\t%s\t%s\n", variable(s.name), s.def, s.desc)
	}
	fmt.Fprint(tw, "\nThe standard OTEL_* variables turn traces on: "+
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318\n")
	return tw.Flush()
}

const preamble = `# Configuration

Settings are environment variables, or entries of a YAML file, which the environment overrides: ` + "`--config bridge.yaml`" + `,
or ` + "`BRIDGE_CONFIG=bridge.yaml`" + `. ` + "`bridge config --output yaml`" + ` prints the settings in force as such a file:

` + "```yaml" + `
name: photos
source:
  url: https://myaccount.blob.core.windows.net   # the same as source_url, outside of a group
  auth: managed_identity
kafka:
  brokers: [kafka-0:9093, kafka-1:9093]
  sasl_password_file: /etc/bridge/password
` + "```" + `

Names are those of the variables in lower case, without ` + "`BRIDGE_`" + `; words of a name can be grouped. A file can hold
[many bridges](fleet.md). In variables, commas separate the items of a list. ` + "`<NAME>_FILE`" + ` is
the path of a file that holds a secret.

Other variables: ` + "`OTEL_*`" + ` for [traces](operations.md#traces), ` + "`GOMEMLIMIT=256MiB`" + ` for
[memory](operations.md#memory-and-processors).

*frozen*: cannot change while records exist; the bridge then does not start, and says what to do.

Only ` + "`BRIDGE_SOURCE_URL` and `BRIDGE_KAFKA_BROKERS`" + ` are required. Defaults are in parentheses.
` + "`make docs`" + ` makes this page.
`

// Markdown writes docs/configuration.md.
func Markdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString(preamble)
	for _, s := range table {
		if s.group != "" {
			fmt.Fprintf(&b, "\n## %s\n\n", s.group)
		}
		fmt.Fprintf(&b, "- `%s`", variable(s.name))
		if s.def != "" {
			fmt.Fprintf(&b, " (`%s`)", s.def)
		}
		fmt.Fprintf(&b, ": %s\n", strings.ReplaceAll(s.desc, "<", `\<`)) // no tag
	}
	_, err := io.WriteString(w, b.String())
	return err
}
