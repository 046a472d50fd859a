package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"blobfeed/internal/plain"
)

// FileError is a settings file that cannot be read. Its settings are then missing.
type FileError struct{ Err error }

func (e *FileError) Error() string { return e.Err.Error() }
func (e *FileError) Unwrap() error { return e.Err }

// readEntries adds settings of the file to what is given, but for those that are overruled.
func (c *Config) readEntries(
	given texts, d *document, entries []entry, p *problems, overruled func(setting string) bool,
) {
	seen, origins := map[string]bool{}, map[string]string{}
	for _, e := range entries {
		problem := misnamed(e.name, e.value, strings.ToLower)
		switch {
		case seen[e.name]:
			problem = "set a second time"
		case e.value == "" && slices.Contains(grouped, strings.ToLower(e.name)):
			problem = "" // a group with nothing in it
		case problem != "", e.value == "":
		case overruled(base(e.name)):
			if given[e.name] != e.value {
				c.overruled = append(c.overruled, variable(e.name))
			}
		default:
			given[e.name] = e.value
			origins[base(e.name)], c.places[e.name] = "file "+d.path, fmt.Sprintf("%s:%d", d.path, e.line)
		}
		if problem != "" {
			p.entry(d, e, problem)
		}
		seen[e.name] = true
	}
	maps.Copy(c.origins, origins)
}

// entry adds a problem of a line of the settings file.
func (p *problems) entry(d *document, e entry, problem string) {
	p.all = append(p.all, fmt.Errorf("%s:%d: %s: %s", d.path, e.line, strings.ToLower(e.name), problem))
}

// entry is a setting in the file.
type entry struct {
	name, value string
	line        int
}

// document is a settings file.
type document struct {
	env    Env
	path   string // "": there is none
	common []entry
	fleet  bool     // the file has a mapping bridges
	bridge []member // in the order of the file
}

// The bounds of a settings file. Whoever can write it must not stop a start, or a bridge that reads it again.
const (
	maxFile  = 4 << 20
	maxNames = 1000 // of a mapping; there are a tenth as many settings
)

// document reads the settings file that BRIDGE_CONFIG names. Problems are of type FileError.
func (env Env) document() (*document, error) {
	d := &document{env: env, path: env[variable(file)]}
	if d.path == "" {
		return d, nil
	}
	if err := d.read(); err != nil {
		return d, &FileError{err}
	}
	return d, nil
}

func (d *document) read() error {
	text, err := d.text()
	if err != nil {
		return fmt.Errorf("reading the settings file: %w: correct --config, or %s", err, variable(file))
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var root, second yaml.Node
	if err := decoder.Decode(&root); errors.Is(err, io.EOF) {
		return nil // nothing but comments
	} else if err != nil {
		return d.invalid(err)
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: want one YAML document: remove the lines --- between settings", d.path)
	}
	settings := root.Content[0]
	if err := d.unknownGroup(settings); err != nil {
		return err
	}
	fleetErr := d.readFleet(settings)
	d.common, err = d.flatten("", settings)
	return errors.Join(fleetErr, err)
}

func (d *document) text() ([]byte, error) {
	text, err := readRegular(d.path, maxFile)
	if err == nil && len(text) > maxFile { // the rest could be bridges
		err = fmt.Errorf("%s has more than %d MiB", d.path, maxFile>>20)
	}
	return text, err
}

// flatten returns the settings of a mapping. The words of a name may be grouped: kafka: {brokers: …} is
// kafka_brokers.
func (d *document) flatten(prefix string, n *yaml.Node) (entries []entry, err error) {
	if n.Kind != yaml.MappingNode {
		return nil, d.at(n.Line, "want settings as name: value, with a space after the colon")
	}
	if names := len(n.Content) / 2; names > maxNames {
		return nil, d.at(n.Line, "%d names in one group of settings: want at most %d", names, maxNames)
	}
	var problems []error
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if lower := strings.ToLower(key.Value); key.Value != lower {
			problems = append(problems, d.at(key.Line, "%s: write names in lower case: %s", key.Value,
				strings.TrimPrefix(lower, strings.ToLower(Prefix)+"_")))
			continue
		}
		name := prefix + strings.ToUpper(key.Value)
		if value.Kind == yaml.MappingNode && !braces(value) {
			more, err := d.flatten(name+"_", value)
			entries, problems = append(entries, more...), append(problems, err)
			continue
		}
		text, err := scalar(value)
		if err != nil {
			problems = append(problems, d.at(value.Line, "%s: %w", strings.ToLower(name), err))
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

// at returns a problem of a line of the file.
func (d *document) at(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", d.path, line, fmt.Errorf(format, args...))
}

// parserLine is how the parser begins a problem. The line may be the one before or after, and the first is left out.
var parserLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// invalid returns the error for a text that is not YAML, with what to write instead.
func (d *document) invalid(err error) error {
	place, problem := parserLine.FindStringSubmatch(err.Error()), parserLine.ReplaceAllString(err.Error(), "")
	line := "1"
	if place != nil && place[1] != "" {
		line = place[1]
	}
	return fmt.Errorf("%s:%s: the YAML is not valid near this line (%s): %s", d.path, line, problem, remedyFor(problem))
}

// remedies say what to write, by a part of the parser's problem.
var remedies = [][2]string{
	{"tab character", "indent with spaces"},
	{"cannot start any token", "indent with spaces, not tabs, and put a value that starts with @, % or ` in " +
		"quotes"},
	{"mapping values are not allowed", "indent the settings of a group alike, and put a value with \": \" in quotes"},
	{"',' or", "close what [ or { opens, or put the value in quotes"},
	{"end of stream", "close the quotation mark"},
	{"anchor", "put a value that starts with * or & in quotes"},
	{"alphabetic or numeric", "put a value that starts with * or & in quotes"},
	{"expected key", "indent the settings of a group alike, and put a value that starts with {, [ or a quotation " +
		"mark in quotes"},
	{"UTF-8", "save the file as UTF-8"},
	{"control characters", "remove the control characters"},
}

func remedyFor(problem string) string {
	for _, r := range remedies {
		if strings.Contains(problem, r[0]) {
			return r[1]
		}
	}
	return "write each setting as name: value"
}

// unknownGroup returns the first problem of the names at the top of the file that hold other names: everything in such
// a group would be reported as unknown.
func (d *document) unknownGroup(settings *yaml.Node) error {
	for i := 0; i+1 < len(settings.Content); i += 2 {
		key, value := settings.Content[i], settings.Content[i+1]
		name := strings.ToUpper(key.Value)
		begins := func(s setting) bool { return s.name == name || strings.HasPrefix(s.name, name+"_") }
		if !holdsNames(value) || key.Value == fleetKey || slices.ContainsFunc(table, begins) {
			continue
		}
		known := append(slices.Clone(grouped), fleetKey)
		if near := plain.Nearest(strings.ToLower(key.Value), known, 2); near != "" {
			return d.at(key.Line, "%s: unknown group of settings; did you mean %s?", key.Value, near)
		}
		return d.at(key.Line, "%s: unknown group of settings; want %s", key.Value, strings.Join(known, ", "))
	}
	return nil
}

// holdsNames reports whether a value is a mapping, or a list with mappings.
func holdsNames(n *yaml.Node) bool {
	return n.Kind == yaml.MappingNode && !braces(n) ||
		n.Kind == yaml.SequenceNode && slices.ContainsFunc(n.Content, holdsNames)
}
