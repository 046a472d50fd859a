package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/kelseyhightower/envconfig"
)

// Load reads the settings from the environment and returns every problem at once, joined; with problems, the settings are
// only good to be shown. Values are not repeated in
// problems: they may be secrets. Without kafka, brokers need not be named: for verbs that only look at the feed.
func Load(kafka bool) (*Config, error) { return load(true, kafka) }

// LoadKafka is Load for verbs that only look at what is in Kafka: the feed need not be named.
func LoadKafka() (*Config, error) { return load(false, true) }

// With returns the settings with changes, and every problem of that, joined.
func (c *Config) With(change func(*Config)) (*Config, error) {
	fresh := *c
	change(&fresh)
	return &fresh, errors.Join(fresh.validate(true, true)...)
}

func load(feed, kafka bool) (*Config, error) {
	var c Config
	files, origins, problems := readFiles()
	// envconfig stops at the first value it can't parse. Such a variable is noted, taken out of the environment, which
	// gives it its default, and reading starts again.
	for {
		err := envconfig.Process(Prefix, &c)
		var parse *envconfig.ParseError
		if !errors.As(err, &parse) {
			if err != nil {
				problems = append(problems, err)
			}
			break
		}
		problems = append(problems, fmt.Errorf("%s: %s", parse.KeyName, wants(parse.TypeName, parse.Err)))
		if err := os.Unsetenv(parse.KeyName); err != nil {
			return nil, err
		}
	}
	for _, s := range describe(reflect.TypeFor[Config]()) {
		if files[s.field] == "" {
			continue
		}
		if err := os.Unsetenv(s.name); err != nil { // it is not set twice
			return nil, err
		}
	}
	c.files, c.origins = files, origins
	c.preset()
	problems = append(problems, unknown(&c)...)
	problems = append(problems, c.validate(feed, kafka)...)
	return &c, errors.Join(problems...)
}

// Reread returns the settings with the secrets that files hold read again: they may have been replaced since.
func (c *Config) Reread() (*Config, error) {
	fresh := *c
	for field, name := range c.files {
		text, err := readSecret(name)
		if err != nil {
			return nil, err
		}
		reflect.ValueOf(&fresh).Elem().Field(field).SetString(text)
	}
	return &fresh, nil
}

func readSecret(name string) (string, error) {
	text, err := os.ReadFile(name)
	return strings.TrimSpace(string(text)), err
}

func wants(typ string, err error) string {
	switch typ {
	case "time.Duration":
		return "want a duration such as 500ms, 10s or 15m"
	case "bool", "*bool":
		return "want true or false"
	case "int", "int16", "int32":
		return "want a whole number"
	}
	return err.Error()
}

// fromFile reports whether a file may hold a setting of this type.
func fromFile(typ reflect.Type) bool {
	return typ == reflect.TypeFor[Secret]() || typ == reflect.TypeFor[Text]()
}

// readFiles sets BRIDGE_X from the file that BRIDGE_X_FILE names, for every X that may come from one, and returns these names, and for
// every setting that is set where it comes from.
func readFiles() (files, origins map[int]string, problems []error) {
	files, origins = map[int]string{}, map[int]string{}
	for _, setting := range describe(reflect.TypeFor[Config]()) {
		name := setting.name
		if os.Getenv(name) != "" {
			origins[setting.field] = "environment"
		}
		file := os.Getenv(name + "_FILE")
		if !fromFile(setting.typ) || file == "" {
			continue
		}
		if os.Getenv(name) != "" {
			problems = append(problems, fmt.Errorf("%s and %s_FILE are both set: keep one", name, name))
			continue
		}
		text, err := readSecret(file)
		if err == nil {
			err = os.Setenv(name, text)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s_FILE: %w", name, err))
		}
		files[setting.field], origins[setting.field] = file, "file "+file
	}
	return files, origins, problems
}

// unknown finds misspelt variables.
func unknown(c *Config) (problems []error) {
	known := variables(reflect.TypeOf(*c))
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, Prefix+"_") {
			continue
		}
		if _, ok := known[name]; ok {
			continue
		}
		if fromFile(known[strings.TrimSuffix(name, "_FILE")]) {
			continue
		}
		hint := "see bridge run --help"
		if near := nearest(name, slices.Collect(maps.Keys(known)), 3); near != "" {
			hint = "did you mean " + near + "?"
		}
		problems = append(problems, fmt.Errorf("%s: no such setting; %s", name, hint))
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return problems
}

// variables maps the name of each environment variable to the type of its field.
func variables(t reflect.Type) map[string]reflect.Type {
	names := map[string]reflect.Type{}
	for _, s := range describe(t) {
		names[s.name] = s.typ
	}
	return names
}
