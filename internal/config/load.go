package config

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"blobfeed/internal/plain"
)

// Env are environment variables by name. The settings come from them, and from the file that one of them names.
type Env map[string]string

// Environ returns those of the process.
func Environ() Env {
	env := Env{}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	return env
}

// UseFile makes path the settings file, as BRIDGE_CONFIG does.
func (env Env) UseFile(path string) { env[variable(file)] = path }

// Load reads the settings and returns every problem at once, joined. Settings with problems are for showing only.
// Problems do not repeat values, which may be secrets, except short ones of settings that take words of a list. Without
// kafka, brokers need not be named: for verbs that only read the feed.
func (env Env) Load(kafka bool) (*Config, error) { return env.load(true, kafka) }

// LoadKafka is Load for verbs that only read Kafka: the feed need not be named.
func (env Env) LoadKafka() (*Config, error) { return env.load(false, true) }

// With returns the settings with changes, and every problem of them, joined.
func (c *Config) With(change func(*Config)) (*Config, error) {
	fresh := *c
	change(&fresh)
	p := &problems{config: &fresh}
	fresh.validate(p, true, true)
	return &fresh, p.joined()
}

func (env Env) load(feed, kafka bool) (*Config, error) {
	d, err := env.document()
	var m *member
	if d.fleet && err == nil {
		m, err = d.chosen()
	}
	c, p := d.load(m, feed, kafka)
	if err != nil { // what is missing without the file is no problem of its own
		return c, err
	}
	return c, p.joined()
}

// load returns the settings of a bridge of the file, or those that all have in common if it is nil.
func (d *document) load(m *member, feed, kafka bool) (*Config, *problems) {
	c := Defaults()
	c.env, c.files, c.origins, c.places = d.env, map[string]string{}, map[string]string{}, map[string]string{}
	p := &problems{config: c}
	given := c.readEnvironment(p)
	c.readEntries(given, d, d.common, p, func(s string) bool { return c.origins[s] == "environment" })
	if m != nil {
		c.readMember(given, d, m, p)
		c.beside = d.others(m)
	}
	c.readSecrets(given, p)
	c.tune(p)
	fill(table, c, given, func(name, problem string) { p.add(name, "%s", problem) })
	for _, s := range table {
		if s.secret() {
			plain.Hide(s.of(c).String())
		}
	}
	c.preset(p)
	c.validate(p, feed, kafka)
	return c, p
}

// Beside returns the other bridges of the settings file.
func (c *Config) Beside() []string { return c.beside }

// Overruled returns the settings of the file that the environment sets to another value.
func (c *Config) Overruled() []string { return c.overruled }

// From returns where the value of the setting of that name comes from: default, environment, file <path> or preset
// <name>.
func (c *Config) From(name string) string {
	if from := c.origins[name]; from != "" {
		return from
	}
	return "default"
}

// Reread returns the settings with the secrets that files hold read again: they may have been replaced since.
func (c *Config) Reread() (*Config, error) {
	fresh := *c
	for name, file := range c.files {
		text, err := ReadSecret(file)
		if err != nil {
			return nil, err
		}
		s, _ := find(table, name)
		s.of(&fresh).SetString(text)
	}
	return &fresh, nil
}

// Fresh returns the value of a setting, read again if a file holds it. It reads no other file.
func (c *Config) Fresh(name string) (string, error) {
	if file := c.files[name]; file != "" {
		return ReadSecret(file)
	}
	s, _ := find(table, name)
	return s.of(c).String(), nil
}

// maxSecret bounds what is read of a file with a secret. Tokens and keys have some KiB.
const maxSecret = 1 << 20

// readRegular reads a file, and no more than one byte above limit. Anything but a regular file is an error: a FIFO
// waits for its writer, and a device may never end.
func readRegular(file string, limit int64) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file (%s)", file, info.Mode().Type())
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit+1))
}

// ReadSecret reads the secret in a file. An empty one is an error: it would open what it is to protect.
func ReadSecret(file string) (string, error) {
	text, err := readRegular(file, maxSecret)
	secret := strings.TrimSpace(string(text))
	switch {
	case err != nil:
		return "", err
	case len(text) > maxSecret:
		return "", fmt.Errorf("%s has more than %d bytes: that is no secret", file, maxSecret)
	case secret == "":
		return "", fmt.Errorf("%s is empty: write the value into it, or leave the setting out", file)
	}
	plain.Hide(secret)
	return secret, nil
}

// readEnvironment returns the variables that are settings, and reports the others: misspelt ones, and those of former
// versions.
func (c *Config) readEnvironment(p *problems) texts {
	given := texts{}
	for _, name := range slices.Sorted(maps.Keys(c.env)) {
		value := c.env[name]
		name, ours := strings.CutPrefix(name, Prefix+"_")
		if !ours || name == file || name == debug {
			continue
		}
		if problem := misnamed(name, value, variable); problem != "" {
			p.add(name, "%s", problem)
			continue
		}
		if s, is := find(table, name); is && value == "" && !s.takesEmpty() { // as of Compose's ${X:-}
			continue
		}
		if given[name] = value; value != "" {
			c.origins[base(name)] = "environment"
		}
	}
	return given
}

// readSecrets replaces X_FILE by X, read from that file, for every X that may come from one.
func (c *Config) readSecrets(given texts, p *problems) {
	for _, s := range table {
		file := given[s.name+"_FILE"]
		if !s.fromFile() || file == "" {
			continue
		}
		if given[s.name] != "" {
			p.add(s.name, "set together with %s_FILE: keep one of them", variable(s.name))
			continue
		}
		text, err := ReadSecret(file)
		if err != nil {
			p.add(s.name+"_FILE", "%w", err)
		}
		given[s.name], c.files[s.name], c.origins[s.name] = text, file, "file "+file
	}
}

// tune reads BRIDGE_DEBUG, a list of name=value.
func (c *Config) tune(p *problems) {
	var items List
	_ = items.Decode(c.env[variable(debug)]) // a list takes any text
	given := texts{}
	for _, item := range items {
		name, value, _ := strings.Cut(item, "=")
		name = strings.ToUpper(name)
		if _, ok := find(tuning, name); !ok {
			p.add(debug, "unknown name %q; want name=value pairs with the names of config.Tuning",
				strings.ToLower(name))
			continue
		}
		given[name] = value
	}
	failed := func(name, problem string) { p.add(debug, "%s: %s", strings.ToLower(name), problem) }
	fill(tuning, &c.Tuning, given, failed)
	for _, s := range tuning {
		s.checkBounds(&c.Tuning, func(problem string) { failed(s.name, problem) })
	}
}

// Variables that are no settings.
const (
	file  = "CONFIG" // path of the settings file
	debug = "DEBUG"
)

// misnamed returns what is wrong with the name of a setting; "" if it is one. Spell writes the name of another one.
func misnamed(name, value string, spell func(string) string) string {
	if _, ok := find(table, name); ok {
		return ""
	}
	if base(name) != name {
		return ""
	}
	for _, former := range []string{name, strings.TrimSuffix(name, "_FILE")} {
		if advice := formerNames[former]; advice != "" && value == "" {
			return "" // as templates of deployments write what is not used
		} else if advice != "" {
			return advice
		}
	}
	names := []string{}
	for _, s := range table {
		names = append(names, s.name)
	}
	name = strings.TrimPrefix(name, Prefix+"_") // as the variable has it, in a file
	if near := plain.Nearest(name, names, 3); near != "" {
		return "unknown setting; did you mean " + spell(near) + "?"
	}
	return "unknown setting; see bridge run --help"
}

// problems are what is wrong with the settings, all of it, each by the name of its setting.
type problems struct {
	config *Config
	all    []error
}

func (p *problems) add(name, format string, args ...any) {
	p.all = append(p.all, p.config.Problem(name, format, args...))
}

// Problem returns an error about the setting of that name, with the place in the settings file if it stands there.
func (c *Config) Problem(name, format string, args ...any) error {
	label := variable(name)
	if place := c.places[name]; place != "" {
		label += " (" + place + ")"
	}
	return fmt.Errorf(label+": "+format, args...)
}

// invalid adds a value that a setting does not take.
func (p *problems) invalid(name, value, want string) {
	s, _ := find(table, name)
	p.add(name, "%s", s.invalid(value, want))
}

func (p *problems) joined() error { return errors.Join(p.all...) }

// required adds the settings that are empty: pairs of name and value. Because says what needs them. A file that cannot
// be read is a problem already.
func (p *problems) required(because string, pairs ...string) {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] == "" && p.config.files[pair[0]] == "" {
			p.add(pair[0], "required for %s", because)
		}
	}
}

// together adds a setting that needs another one.
func (p *problems) together(name, other string) {
	p.add(name, "set it together with %s", variable(other))
}

// idle adds the settings that are not empty, but have no effect without another one.
func (p *problems) idle(without string, pairs ...string) {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			p.add(pair[0], "has no effect without %s", without)
		}
	}
}
