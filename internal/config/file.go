package config

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readFile adds the settings of the file that BRIDGE_CONFIG names to the environment; what is there wins.
func (c *Config) readFile(env *overlay, p *problems) {
	path := os.Getenv(variable(file))
	if path == "" {
		return
	}
	entries, err := readEntries(path)
	if err != nil {
		p.add(file, "reading %s: %w", path, err)
	}
	seen, origins := map[string]bool{}, map[string]string{}
	for _, e := range entries {
		base := e.name // X, for X_FILE of a secret: the two are one setting
		if s, ok := find(table, strings.TrimSuffix(e.name, "_FILE")); ok && s.fromFile() {
			base = s.name
		}
		problem := misnamed(e.name, e.value, strings.ToLower)
		switch {
		case seen[e.name]:
			problem = "set a second time"
		case e.value == "" && slices.Contains(grouped, strings.ToLower(e.name)):
			problem = "" // a group with nothing in it
		case problem != "", e.value == "", c.origins[base] == "environment":
		default:
			if err := env.set(variable(e.name), e.value); err != nil {
				problem = err.Error()
			}
			origins[base], c.places[e.name] = "file "+path, fmt.Sprintf("%s:%d", path, e.line)
		}
		if problem != "" {
			p.all = append(p.all, fmt.Errorf("%s:%d: %s: %s", path, e.line, strings.ToLower(e.name), problem))
		}
		seen[e.name] = true
	}
	maps.Copy(c.origins, origins)
}

// entry is a setting in the file.
type entry struct {
	name, value string
	line        int
}

// maxFile bounds the settings file.
const maxFile = 1 << 20

func readEntries(path string) ([]entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	decoder := yaml.NewDecoder(io.LimitReader(f, maxFile))
	var document, second yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, nil // nothing but comments
	} else if err != nil {
		return nil, err
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("want one YAML document")
	}
	return flatten("", document.Content[0])
}

// flatten returns the settings of a mapping. The words of a name may be grouped: kafka: {brokers: …} is
// kafka_brokers.
func flatten(prefix string, n *yaml.Node) (entries []entry, err error) {
	if n.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: want settings as name: value", n.Line)
	}
	var problems []error
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Value != strings.ToLower(key.Value) {
			problems = append(problems, fmt.Errorf("line %d: %s: write names in lower case", key.Line, key.Value))
			continue
		}
		name := prefix + strings.ToUpper(key.Value)
		if value.Kind == yaml.MappingNode && !braces(value) {
			more, err := flatten(name+"_", value)
			entries, problems = append(entries, more...), append(problems, err)
			continue
		}
		text, err := scalar(value)
		if err != nil {
			problems = append(problems, fmt.Errorf("line %d: %s: %w", value.Line, strings.ToLower(name), err))
			continue
		}
		entries = append(entries, entry{name, text, key.Line})
	}
	return entries, errors.Join(problems...)
}

// braces reports whether a mapping was meant as a text, such as {container}.
func braces(n *yaml.Node) bool {
	return n.Style&yaml.FlowStyle != 0 && len(n.Content) == 2 && n.Content[1].ShortTag() == "!!null"
}

// scalar returns a value as its variable would have it: lists with commas.
func scalar(n *yaml.Node) (string, error) {
	switch {
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		return "", nil
	case n.Kind == yaml.ScalarNode && strings.HasPrefix(n.ShortTag(), "!!"):
		return n.Value, nil
	case n.Kind == yaml.ScalarNode:
		return "", errors.New("put text that starts with ! in quotes")
	case n.Kind == yaml.SequenceNode:
		var items []string
		for _, item := range n.Content {
			text, err := scalar(item)
			if err != nil {
				return "", err
			}
			if item.Kind != yaml.ScalarNode || strings.Contains(text, ",") {
				return "", errors.New("want a list of texts without commas")
			}
			items = append(items, text)
		}
		return strings.Join(items, ","), nil
	}
	if n.Kind == yaml.MappingNode {
		return "", errors.New("put text that starts with { in quotes")
	}
	return "", errors.New("want a value or a list; aliases are not supported")
}
