package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/kelseyhightower/envconfig"
)

// Load reads the settings from the environment and returns every problem at once, joined. Values are not repeated in
// problems: they may be secrets. Without kafka, brokers need not be named: for verbs that only look at the feed.
func Load(kafka bool) (*Config, error) {
	var c Config
	files, problems := readFiles()
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
	problems = append(problems, unknown(&c)...)
	problems = append(problems, c.validate(kafka)...)
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	c.files = files
	return &c, nil
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

// readFiles sets BRIDGE_X from the file that BRIDGE_X_FILE names, for every secret X, and returns these names.
func readFiles() (files map[int]string, problems []error) {
	files = map[int]string{}
	for _, setting := range describe(reflect.TypeFor[Config]()) {
		name := setting.name
		file := os.Getenv(name + "_FILE")
		if setting.typ != reflect.TypeFor[Secret]() || file == "" {
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
		files[setting.field] = file
	}
	return files, problems
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
		if typ := known[strings.TrimSuffix(name, "_FILE")]; typ == reflect.TypeFor[Secret]() {
			continue
		}
		problems = append(problems, fmt.Errorf("%s: no such setting; see bridge run --help", name))
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
