package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

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
	return fmt.Errorf("%s:%s: the YAML is not valid near this line (%s): %s", d.path, line, problem,
		remedyFor(problem))
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
		if near := Nearest(strings.ToLower(key.Value), known, 2); near != "" {
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
