package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Fleet are the settings of many bridges that share a process.
type Fleet struct {
	Path     string
	Common   *Config            // what belongs to the process; its other settings are defaults of the bridges
	Bridges  []*Config          // those without problems, by name
	Rejected map[string][]error // the problems of the others, by name
}

// member is a bridge of the file.
type member struct {
	name    string
	line    int
	entries []entry
}

// fleetKey is the mapping of a fleet's bridges: name to settings.
const fleetKey = "bridges"

// readFleet takes the bridges out of the mapping of all settings.
func (d *document) readFleet(settings *yaml.Node) error {
	for i := 0; i+1 < len(settings.Content); i += 2 {
		key, value := settings.Content[i], settings.Content[i+1]
		if key.Value != fleetKey {
			continue
		}
		if d.fleet = true; value.Kind != yaml.MappingNode && value.ShortTag() != "!!null" {
			return d.at(value.Line, "%s: want a mapping of names to settings", fleetKey)
		}
		settings.Content = slices.Delete(settings.Content, i, i+2)
		return d.readMembers(value)
	}
	return nil
}

// maxBridges is how many bridges a settings file has at most. An idle one holds two thirds of a MiB and 12 files, so
// this many need 7 GB. The bound keeps a damaged or hostile file from taking minutes to read.
const maxBridges = 10_000

func (d *document) readMembers(bridges *yaml.Node) error {
	if n := len(bridges.Content) / 2; n > maxBridges {
		return d.at(bridges.Line, "%s: %d bridges are more than a process can run; list at most %d, and the others in "+
			"another file for another process", fleetKey, n, maxBridges)
	}
	var problems []error
	known := map[string]bool{}
	for i := 0; i+1 < len(bridges.Content); i += 2 {
		key, value := bridges.Content[i], bridges.Content[i+1]
		m := member{name: key.Value, line: key.Line}
		if known[m.name] {
			problems = append(problems, d.at(key.Line, "bridge %s: defined a second time", m.name))
			continue
		}
		known[m.name] = true
		if value.ShortTag() != "!!null" { // all of its settings are the common ones
			var err error
			if m.entries, err = d.flatten("", value); err != nil {
				problems = append(problems, fmt.Errorf("bridge %s: %w", m.name, err))
			}
		}
		d.bridge = append(d.bridge, m)
	}
	return errors.Join(problems...)
}

// chosen returns the bridge that BRIDGE_NAME names.
func (d *document) chosen() (*member, error) {
	var names []string
	name := os.Getenv(variable("NAME"))
	for i, m := range d.bridge {
		if m.name == name {
			return &d.bridge[i], nil
		}
		names = append(names, m.name)
	}
	near := Nearest(name, names, 3)
	list := strings.Join(names[:min(len(names), listedNames)], ", ")
	if more := len(names) - listedNames; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	switch {
	case len(names) == 0:
		return nil, fmt.Errorf("%s has no bridges: list them under %s, or remove that line", d.path, fleetKey)
	case name == "":
		return nil, fmt.Errorf("%s has many bridges: set %s to one of %s; check and status also take --all",
			d.path, variable("NAME"), list)
	case near != "":
		return nil, fmt.Errorf("%s has no bridge %q, which %s names; did you mean %s?", d.path, name,
			variable("NAME"), near)
	}
	return nil, fmt.Errorf("%s has no bridge %q, which %s names: set it to one of %s", d.path, name,
		variable("NAME"), list)
}

// listedNames is how many bridges an error lists.
const listedNames = 20

// processOnly returns why a bridge of a fleet cannot have a setting of its own; "" if it can.
func processOnly(name string) string {
	if name == "NAME" {
		return "the bridge has the name under which its settings stand: remove this one"
	}
	group, _, _ := strings.Cut(name, "_")
	if name == "INSTANCE" || group != "SOURCE" && slices.Contains(grouped, strings.ToLower(group)) {
		return "applies to all bridges of the process: move it out of " + fleetKey
	}
	return ""
}

// readMember adds the settings of a bridge to what is given. They win over all others, since they are the most specific:
// a variable that is set for all bridges must not turn them into one.
func (c *Config) readMember(given texts, d *document, m *member, p *problems) {
	for _, e := range d.common {
		if e.name == "NAME" && e.value != "" {
			p.entry(d, e, "each bridge has its own name, the key under "+fleetKey+": remove this one")
		}
	}
	entries := []entry{{"NAME", m.name, m.line}}
	for _, e := range m.entries {
		if problem := processOnly(base(e.name)); problem != "" {
			p.entry(d, e, problem)
			continue
		}
		if base := base(e.name); e.value != "" && base+"_FILE" != e.name {
			delete(given, base+"_FILE") // of the common settings: the two would contradict each other
		} else if e.value != "" {
			delete(given, base)
		}
		entries = append(entries, e)
	}
	common := services(given)
	c.readEntries(given, d, entries, p, func(string) bool { return false })
	keepServices(given, common, p)
}

// services returns the presets for Kafka that are given.
func services(given texts) List {
	var presets List
	_ = presets.Decode(given["PRESET"]) // a list takes any text
	return slices.DeleteFunc(presets, func(name string) bool { return !slices.Contains(servicePresets, name) })
}

// keepServices adds the common presets for Kafka to those of a bridge, which may only choose the form of its records.
func keepServices(given texts, common List, p *problems) {
	own := services(given)
	for _, name := range own {
		if !slices.Contains(common, name) {
			p.add("PRESET", "%s applies to all bridges of the process: move it out of %s", name, fleetKey)
		}
	}
	for _, name := range common {
		if !slices.Contains(own, name) {
			given["PRESET"] += "," + name
		}
	}
}

// Err returns the problems of all bridges, nil if there are none. A problem that every bridge has is reported once.
func (f *Fleet) Err() error {
	count := map[string]int{}
	for _, problems := range f.Rejected {
		for _, problem := range problems {
			count[problem.Error()]++
		}
	}
	var all []error
	reported := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(f.Rejected)) {
		for _, problem := range f.Rejected[name] {
			switch text := problem.Error(); {
			case len(f.Bridges) > 0 || len(f.Rejected) == 1 || count[text] < len(f.Rejected):
				all = append(all, fmt.Errorf("bridge %s: %w", name, problem))
			case !reported[text]:
				all, reported[text] = append(all, problem), true
			}
		}
	}
	return errors.Join(all...)
}

// Changed returns the names of the settings that differ from those of other. A secret whose file is the same is read
// again when it is needed, so another content is no change.
func (c *Config) Changed(other *Config) (names []string) {
	for _, s := range table {
		file := c.files[s.name]
		if file != other.files[s.name] ||
			file == "" && !reflect.DeepEqual(s.of(c).Interface(), s.of(other).Interface()) {
			names = append(names, s.name)
		}
	}
	return names
}

// OfProcess reports whether only a restart of the process puts a change of the setting into force.
func OfProcess(name string) bool {
	return strings.HasPrefix(name, "HTTP_") || strings.HasPrefix(name, "LOG_")
}
