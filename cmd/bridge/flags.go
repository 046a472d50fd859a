package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"blobfeed/internal/config"
	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/internal/setup"
	"blobfeed/internal/status"
)

// usageError is a mistake in the arguments.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

// settingsError is a mistake in the settings. [plain.SettingsError] is one that shows later.
type settingsError struct{ error }

func (e *settingsError) Unwrap() error { return e.error }

// typed returns err as a usage error if it is about settings that somebody typed as flags.
func typed(err error) error {
	if errors.As(err, new(*plain.SettingsError)) {
		return &usageError{err}
	}
	return err
}

// flags returns a flag set with a help text: usage, the flags, and more if it is not nil. Help goes to stdout, since
// the user asks for it. With --config, env names the settings file; it is nil if the verb has no settings.
func flags(env config.Env, name, usage string, stdout io.Writer, more func(io.Writer)) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	if env != nil {
		fs.Func("config", "YAML `file` with settings; the environment wins over it", func(path string) error {
			env.UseFile(path)
			return nil
		})
	}
	fs.SetOutput(stdout)
	fs.Usage = func() {
		fmt.Fprintf(fs.Output(), "usage: bridge %s %s\n", name, usage)
		fs.PrintDefaults()
		if more != nil {
			more(fs.Output())
		}
	}
	return fs
}

// parse accepts flags before and after other arguments, which it puts into words. An invalid flag or an unexpected
// argument is a usage error; flag.ErrHelp passes through.
func parse(fs *flag.FlagSet, args []string, words ...*string) error {
	for {
		stdout := fs.Output()
		fs.SetOutput(io.Discard) // else the package prints the help for every mistake
		err := fs.Parse(args)
		fs.SetOutput(stdout)
		if errors.Is(err, flag.ErrHelp) {
			fs.Usage()
			return err
		}
		if err != nil {
			err = explained(fs, err)
			return &usageError{fmt.Errorf("%w; see bridge %s --help", err, fs.Name())}
		}
		if fs.NArg() == 0 {
			return nil
		}
		if len(words) == 0 {
			return &usageError{fmt.Errorf("unexpected argument %q; see bridge %s --help", fs.Arg(0), fs.Name())}
		}
		*words[0] = fs.Arg(0)
		words, args = words[1:], fs.Args()[1:]
	}
}

// invalid is how package flag reports a value that it does not accept.
var invalid = regexp.MustCompile(`^(invalid (?:boolean )?value .* for (?:flag )?)-(\S+): (.*)$`)

// explained says what a flag wants in place of "parse error", and which flag a mistyped one may be. It names flags
// with two dashes, as the help of the settings does.
func explained(fs *flag.FlagSet, err error) error {
	if name, is := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); is {
		var names []string
		fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
		if near := plain.Nearest(name, names, 2); near != "" {
			return fmt.Errorf("unknown flag --%s (did you mean --%s?)", name, near)
		}
		return fmt.Errorf("unknown flag --%s", name)
	}
	if name, is := strings.CutPrefix(err.Error(), "flag needs an argument: -"); is {
		return fmt.Errorf("--%s needs a value", name)
	}
	m := invalid.FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	why := m[3]
	if value, ok := fs.Lookup(m[2]).Value.(flag.Getter); ok && why == "parse error" {
		switch value.Get().(type) {
		case time.Duration:
			why = "want a duration such as 2s or 5m"
		case bool:
			why = "want true or false"
		default:
			why = "want a number"
		}
	}
	return fmt.Errorf("%s--%s: %s", m[1], m[2], why)
}

// parsePlace parses the place in the feed that a flag names. The words are those that the verb itself knows.
func parsePlace(flag, text string, words ...string) (history.Target, error) {
	place, err := history.ParseTarget(text, words...)
	if err == nil {
		return place, nil
	}
	if near := plain.Nearest(text, append(words, "earliest"), 2); near != "" {
		err = fmt.Errorf("%q is no place in the feed; did you mean %s?", text, near)
	}
	return place, &usageError{fmt.Errorf("--%s: %w", flag, err)}
}

// parseOutput parses the flags of a verb that prints text or JSON; document says what JSON it is.
func parseOutput(fs *flag.FlagSet, args []string, document string, words ...*string) (asJSON bool, err error) {
	output := fs.String("output", "text", "text, or json: "+document)
	if err := parse(fs, args, words...); err != nil {
		return false, err
	}
	return wantsJSON(*output)
}

func wantsJSON(output string) (bool, error) {
	if output != "text" && output != "json" {
		return false, &usageError{fmt.Errorf("--output %s: want text or json", output)}
	}
	return output == "json", nil
}

// openState returns the settings for Kafka, and a reader of the state that they name.
func openState(env config.Env) (c *config.Config, r *status.Reader, done func(), err error) {
	if c, err = load(env.LoadKafka()); err != nil {
		return nil, nil, nil, err
	}
	r, done, err = setup.State(c)
	return c, r, done, err
}

// load examines settings, and wraps their problems: load(env.Load(true)).
func load(c *config.Config, err error) (*config.Config, error) {
	if c, err = setup.Examined(c, err); err != nil {
		return nil, invalidSettings(err)
	}
	return c, nil
}

// invalidSettings returns the error of invalid settings: one problem on its line, several below it.
func invalidSettings(err error) error {
	if !strings.Contains(err.Error(), "\n") {
		return &settingsError{fmt.Errorf("settings: %w", err)}
	}
	return &settingsError{fmt.Errorf("settings:\n%w", err)}
}
