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

Settings are environment variables, or entries of a YAML file: ` + "`bridge run --config bridge.yaml`" + `, or
` + "`BRIDGE_CONFIG=bridge.yaml`" + `. The environment wins over the file.
` + "`bridge config --output yaml`" + ` prints the settings in force as such a file:

` + "```yaml" + `
name: photos
source:
  url: https://myaccount.blob.core.windows.net   # the same as source_url, outside of a group
  auth: managed_identity
kafka:
  brokers: [kafka-0:9093, kafka-1:9093]
  sasl_password_file: /etc/bridge/password
` + "```" + `

A file can hold the settings of [many bridges](fleet.md).
Names are those of the variables in lower case, without ` + "`BRIDGE_`" + `. Words of a name can be grouped.
Unknown names are errors.
A secret can also be given as ` + "`<NAME>_FILE`" + `, the path of a file that holds it.
In variables, commas separate the items of a list; spaces around items do not count.
The program reports every problem at once, and then exits with 2.
Traces have the standard variables ` + "`OTEL_*`" + `: [operations.md](operations.md#traces).
` + "`GOMEMLIMIT`" + ` limits the memory of the process, such as ` + "`GOMEMLIMIT=256MiB`" + `: the bridge then
holds fewer records and collects garbage more often. Default: 160 MiB, or nine tenths of a smaller container's memory.

*frozen*: cannot change while records exist. The bridge then does not start, and says what to do.

Only ` + "`BRIDGE_SOURCE_URL` and `BRIDGE_KAFKA_BROKERS`" + ` are required. Made from the source by ` + "`make docs`" + `.
`

// Markdown writes docs/configuration.md.
func Markdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString(preamble)
	escaped := strings.NewReplacer("|", `\|`, "<", `\<`) // a table's column, a tag
	for _, s := range table {
		if s.group != "" {
			fmt.Fprintf(&b, "\n## %s\n\n| setting | default | meaning |\n|---|---|---|\n", s.group)
		}
		def := ""
		if s.def != "" {
			def = "`" + s.def + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", variable(s.name), def, escaped.Replace(s.desc))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
