package stack

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
)

//go:embed server.properties.tmpl
var serverProperties string

// settings fill server.properties.tmpl.
type settings struct {
	ID, Port, ControllerPort int
	Voters, Data             string
	Replicas, MinISR         int
	BrokerSession            int // ms
	Links                    []Link
}

// render returns server.properties. Extra properties take the place of those of the same name.
func (v settings) render(extra map[string]string) ([]byte, error) {
	tmpl, err := template.New("server.properties").Option("missingkey=error").Parse(serverProperties)
	if err != nil {
		return nil, fmt.Errorf("parsing the broker's settings: %w", err)
	}
	var own, text bytes.Buffer
	if err := tmpl.Execute(&own, v); err != nil {
		return nil, fmt.Errorf("rendering the broker's settings: %w", err)
	}
	for line := range strings.Lines(own.String()) {
		name, _, isProperty := strings.Cut(line, "=")
		if _, replaced := extra[name]; isProperty && replaced {
			continue
		}
		text.WriteString(line)
	}
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		// A backslash or a line break means something in a properties file.
		value := strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(extra[name])
		fmt.Fprintf(&text, "%s=%s\n", name, value)
	}
	return text.Bytes(), nil
}
