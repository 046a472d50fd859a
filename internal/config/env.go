package config

import (
	"errors"
	"os"

	"github.com/kelseyhightower/envconfig"
)

// overlay adds variables to the environment, which is all that envconfig reads, until restore.
type overlay struct {
	was map[string]*string // nil: not set
}

func (o *overlay) set(name, value string) error {
	o.keep(name)
	return os.Setenv(name, value)
}

func (o *overlay) unset(name string) {
	o.keep(name)
	_ = os.Unsetenv(name) // fails for no name that an environment has
}

func (o *overlay) keep(name string) {
	if _, kept := o.was[name]; kept {
		return
	}
	if o.was == nil {
		o.was = map[string]*string{}
	}
	o.was[name] = nil
	if value, ok := os.LookupEnv(name); ok {
		o.was[name] = &value
	}
}

func (o *overlay) restore() {
	for name, value := range o.was {
		if value == nil {
			_ = os.Unsetenv(name)
		} else {
			_ = os.Setenv(name, *value) // it was set before
		}
	}
}

// process fills the struct of settings that to points to. envconfig stops at the first value that does not parse: such
// a variable is reported, gets its default, and reading starts again.
func (o *overlay) process(prefix string, to any, failed func(variable, problem string)) error {
	for {
		err := envconfig.Process(prefix, to)
		var parse *envconfig.ParseError
		if !errors.As(err, &parse) {
			return err
		}
		failed(parse.KeyName, wants(parse.TypeName, parse.Err))
		o.unset(parse.KeyName)
	}
}

// wants says what a type takes. Values are not repeated: they may be secrets.
func wants(typ string, err error) string {
	switch typ {
	case "time.Duration":
		return "want a duration such as 500ms, 10s or 15m"
	case "bool":
		return "want true or false"
	case "int", "int16", "int32":
		return "want a whole number"
	}
	return err.Error()
}
