package config

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"go.yaml.in/yaml/v3"
)

// Effective is a setting as it is in force.
type Effective struct {
	Name  string `json:"name"`
	Value string `json:"value"` // "(set)" for a secret
	From  string `json:"from"`  // default, environment, file <path>, preset <name>
}

// Effective returns all settings, in the order of the reference.
func (c *Config) Effective() (all []Effective) {
	for _, s := range table {
		all = append(all, Effective{variable(s.name), strings.Join(c.shown(s), ","), c.From(s.name)})
	}
	return all
}

// shown returns the value of a setting, the items of a list by themselves, without secrets.
func (c *Config) shown(s setting) (items []string) {
	list, ok := s.of(c).Interface().(List)
	if !ok {
		list = List{fmt.Sprint(s.of(c).Interface())} // a Secret masks itself
	}
	for _, item := range list {
		items = append(items, redact(s.name, item))
	}
	return items
}

// YAML writes a settings file that has the same effect: what is set, and the defaults as comments. A secret is not
// shown: if it came from a file, its path is.
func (c *Config) YAML(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Settings of the bridge: bridge run --config <this file>. The environment wins over it.\n")
	groups := map[string]string{}
	for _, s := range table {
		first, rest, _ := strings.Cut(strings.ToLower(s.name), "_")
		if !slices.Contains(grouped, first) {
			b.WriteString(c.line(s, strings.ToLower(s.name)))
			continue
		}
		groups[first] += "  " + c.line(s, rest)
	}
	for _, first := range grouped {
		head := first + ":\n"
		if !live.MatchString(groups[first]) {
			head = "# " + head // a group with nothing in it would be null
		}
		b.WriteString("\n" + head + groups[first])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Env writes the settings as a file of environment variables: what is set, and the defaults as comments.
func (c *Config) Env(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Settings of the bridge, for --env-file, EnvironmentFile= or a ConfigMap.\n")
	for _, s := range table {
		name, items, comment := c.entry(s, variable(s.name), "_FILE")
		value := strings.Join(items, ",")
		if strings.ContainsAny(value, "\r\n") {
			comment, value = "# ", "(has a line break, which such a file cannot hold)"
		}
		fmt.Fprintf(&b, "%s%s=%s\n", comment, name, value)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// grouped are the words by which YAML groups settings. None is a setting by itself.
var grouped = []string{"source", "kafka", "registry", "http", "log"}

// live matches a line that is no comment.
var live = regexp.MustCompile(`(?m)^\s+[^\s#]`)

// line returns the line of a setting under that name.
func (c *Config) line(s setting, name string) string {
	name, items, comment := c.entry(s, name, "_file")
	text, err := yaml.Marshal(map[string]any{name: value(items)})
	if err != nil {
		panic(fmt.Sprintf("writing %s as YAML: %v", name, err)) // a text or texts
	}
	return comment + string(text)
}

// entry returns the name and the value of a setting in a file, and what makes the line a comment. File ends the name of
// a setting whose value is in a file of its own.
func (c *Config) entry(s setting, name, file string) (_ string, items []string, comment string) {
	items, from := c.shown(s), c.From(s.name)
	switch {
	case c.files[s.name] != "":
		return name + file, []string{c.files[s.name]}, ""
	case s.secret() && from != "default":
		return name + file, []string{"/path/of/the/secret"}, "# "
	case from == "default", strings.HasPrefix(from, "preset "), strings.Contains(strings.Join(items, ""), hidden):
		return name, items, "# "
	}
	return name, items, ""
}

// value returns what stands behind a name: a flow list of several items, so that a line holds it.
func value(items []string) any {
	list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, item := range items {
		n := &yaml.Node{Kind: yaml.ScalarNode, Value: item}
		if n.ShortTag() == "!!null" || strings.ContainsAny(item, "\r\n") {
			n.Style = yaml.DoubleQuotedStyle
		}
		list.Content = append(list.Content, n)
	}
	if len(items) == 1 {
		return list.Content[0]
	}
	return list
}

// pasted finds what holds a secret wherever it stands: connection strings and shared access signatures.
var pasted = regexp.MustCompile(`(?i)(^|[;?&])\s*(AccountKey|SharedAccessKey|SharedAccessSignature|sig)=`)

const hidden = "(hidden)"

// redact hides what was pasted into a setting that is shown, and is no part of it: a connection string, the query of a
// URL, the user in front of a host. Most of these values are rejected, but config shows them with their problems.
func redact(name, text string) string {
	if strings.HasPrefix(text, "file:///") {
		return text
	}
	if name == "KAFKA_SASL_TOKENS" && !strings.Contains(text, "://") && text != "" && !slices.Contains(entra, text) {
		return hidden // a token, although the setting is where tokens come from
	}
	rest, scheme := text, ""
	if i := strings.Index(text, "://"); i >= 0 {
		scheme, rest = text[:i+3], text[i+3:]
	}
	if scheme != "" || strings.HasSuffix(name, "_URL") || strings.HasSuffix(name, "_BROKERS") {
		var query string
		rest, query, _ = strings.Cut(rest, "?")
		// The last one: a password may hold anything, and is not always escaped.
		if i := strings.LastIndex(rest, "@"); i >= 0 {
			rest = hidden + rest[i:]
		}
		if query != "" {
			rest += "?" + hidden
		}
	}
	if pasted.MatchString(scheme + rest) {
		return hidden
	}
	return scheme + rest
}

// Usage writes the settings for a terminal.
func Usage(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range table {
		if s.group != "" {
			fmt.Fprintf(tw, "\n%s\n", s.group)
		}
		fmt.Fprintf(tw, "  %s\t%s\t%s\n", variable(s.name), s.def, s.desc)
	}
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

Another variable: ` + "`GOMEMLIMIT=256MiB`" + ` for [memory](operations.md#memory-and-processors).

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
