package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"blobfeed/internal/plain"
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
		settings.Content = slices.Delete(settings.Content, i, i+2)
		if d.fleet = true; value.Kind != yaml.MappingNode && value.ShortTag() != "!!null" {
			return d.at(value.Line, "%s: want a mapping of names to settings", fleetKey)
		}
		return d.readMembers(value)
	}
	return nil
}

// maxBridges is how many bridges a settings file has at most. An idle one holds two thirds of a MiB and 3 files, so
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
	name := d.env[variable("NAME")]
	for i, m := range d.bridge {
		if m.name == name {
			return &d.bridge[i], nil
		}
		names = append(names, m.name)
	}
	near := plain.Nearest(name, names, 3)
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

// others returns the names of the bridges but for one.
func (d *document) others(but *member) (names []string) {
	for _, m := range d.bridge {
		if m.name != but.name {
			names = append(names, m.name)
		}
	}
	return names
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

// readMember adds the settings of a bridge to what is given. They win over all others, since they are the most
// specific: a variable that is set for all bridges must not turn them into one.
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

// OfBridge reports whether a change of the setting is put into force without a restart of the process.
func OfBridge(name string) bool {
	return !strings.HasPrefix(name, "HTTP_") && !strings.HasPrefix(name, "LOG_")
}

// LoadFleet reads the settings of all bridges of the settings file, or returns nil if the file has none, or if
// BRIDGE_NAME chooses one of them. Examine returns more problems of a bridge. An error concerns the whole file.
func (env Env) LoadFleet(examine func(*Config) []error) (*Fleet, error) {
	d, err := env.document()
	if d.lacksFleet() != nil {
		return nil, nil // Load reports an error
	}
	if err != nil {
		return nil, err
	}
	return d.loadFleet(examine)
}

// RequireFleet is LoadFleet where only the bridges of a settings file will do: it returns an error instead of nil.
func (env Env) RequireFleet(examine func(*Config) []error) (*Fleet, error) {
	d, err := env.document()
	if err == nil { // of a file that cannot be read, it is unknown whether it has bridges
		err = d.lacksFleet()
	}
	if err != nil {
		return nil, err
	}
	return d.loadFleet(examine)
}

// lacksFleet returns why there are no settings of many bridges.
func (d *document) lacksFleet() error {
	switch {
	case d.path == "":
		return fmt.Errorf("no settings file is named: name one that has %s with --config, or %s", fleetKey,
			variable(file))
	case !d.fleet:
		return fmt.Errorf("%s has no bridges: list them under %s", d.path, fleetKey)
	case d.env[variable("NAME")] != "":
		return fmt.Errorf("%s chooses one bridge of %s: unset it", variable("NAME"), d.path)
	}
	return nil
}

func (d *document) loadFleet(examine func(*Config) []error) (*Fleet, error) {
	f := &Fleet{Path: d.path, Rejected: map[string][]error{}}
	common, p := d.load(nil, false, true)
	if f.Common = common; len(d.bridge) == 0 {
		return f, p.joined()
	}
	for i := range d.bridge {
		m := &d.bridge[i]
		c, p := d.load(m, true, true)
		if p.all = append(p.all, examine(c)...); len(p.all) > 0 {
			f.Rejected[m.name] = p.all
			continue
		}
		f.Bridges = append(f.Bridges, c)
	}
	slices.SortFunc(f.Bridges, func(a, b *Config) int { return cmp.Compare(a.Name, b.Name) })
	f.rejectSharedTopics()
	return f, nil
}

const ofAccount = "{account}"

// writer is a bridge, and the topic, or the template of topics, that its account fills.
type writer struct {
	*Config
	topic string // "" if the settings do not say which account it is
}

// rejectSharedTopics rejects bridges that would write to the topic of another one: both would write resolved markers
// that hold for one of them.
func (f *Fleet) rejectSharedTopics() {
	var all []writer
	same := map[string][]writer{} // by template, and by topic
	for _, c := range f.Bridges {
		w := writer{c, c.Topic}
		if strings.Contains(c.Topic, ofAccount) {
			if w.topic = ""; c.account() != "" {
				w.topic = strings.ReplaceAll(c.Topic, ofAccount, c.account())
			}
			same[c.Topic] = append(same[c.Topic], w)
		}
		if w.topic != "" {
			same[w.topic] = append(same[w.topic], w)
		}
		all = append(all, w)
	}
	for _, w := range all {
		for _, other := range slices.Concat(same[w.topic], same[w.Topic]) {
			if problem := w.shares(other); problem != "" && f.Rejected[w.Name] == nil {
				f.Rejected[w.Name] = []error{w.Problem("TOPIC", "bridge %s %s", other.Name, problem)}
			}
		}
	}
	f.Bridges = slices.DeleteFunc(f.Bridges, func(c *Config) bool { return f.Rejected[c.Name] != nil })
}

// shares returns what is wrong if both may write to one topic, and the settings do not permit that.
func (w writer) shares(other writer) string {
	shared := w.TopicShared && other.TopicShared
	switch known := w.topic != "" && other.topic != ""; {
	case w.Name == other.Name, known && w.topic != other.topic:
		return ""
	case w.feed() == other.feed():
		return "reads the same feed and writes to the same topic " + w.Topic + ": remove one, or give it another topic"
	case shared:
		return ""
	case known && w.account() == other.account() && strings.Contains(w.Topic, ofAccount):
		return fmt.Sprintf("is of the same account %s and writes to the same topic %s: remove one, give it another "+
			"topic, or correct its %s", w.account(), w.topic, variable("SOURCE_ACCOUNT"))
	case known:
		return fmt.Sprintf("writes to the same topic %s: give each bridge its own, for example with %s, "+
			"or set %s=true for all of them", w.Topic, ofAccount, variable("TOPIC_SHARED"))
	}
	// The records of a directory name their account, which the settings need not.
	return fmt.Sprintf("may write to the same topic, because the account of a directory is unknown before it is read: "+
		"set %s for both, or %s=true", variable("SOURCE_ACCOUNT"), variable("TOPIC_SHARED"))
}

// feed returns the address of the feed.
func (c *Config) feed() string {
	return cmp.Or(strings.TrimRight(c.SourceURL, "/"), string(c.SourceConnectionString))
}

// account returns the name of the account, or, of an address that does not have it, the address; "" of a directory
// without SOURCE_ACCOUNT.
func (c *Config) account() string {
	name, at := c.SourceAccount, c.SourceURL
	if connection := string(c.SourceConnectionString); connection != "" {
		name = cmp.Or(name, plain.ConnectionPart(connection, "AccountName"))
		at = cmp.Or(plain.ConnectionPart(connection, "BlobEndpoint"), at)
	}
	u, err := url.Parse(at)
	if err == nil && u.Scheme != "file" {
		name = cmp.Or(name, plain.AccountName(u.Hostname(), u.Path), u.Hostname())
	}
	return strings.ToLower(name)
}
