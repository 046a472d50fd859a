package config

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kelseyhightower/envconfig"
)

// setting is a field of a struct of settings, as its tags describe it.
type setting struct {
	name     string // without the prefix
	def      string
	desc     string
	group    string   // heading of the settings from here on; "": that of the one before
	oneOf    []string // the values that it takes; none: any
	min, max string   // "": no bound
	typ      reflect.Type
	field    int // index in the struct
}

var (
	table  = describe(reflect.TypeFor[Config]())
	tuning = describe(reflect.TypeFor[Tuning]())
)

var (
	words = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	runs  = regexp.MustCompile(`([A-Z])([A-Z][a-z])`)
)

// describe reads a struct's tags, in the order of the fields, with the names that envconfig gives them.
func describe(t reflect.Type) (settings []setting) {
	for f := range t.Fields() {
		if !f.IsExported() || f.Tag.Get("ignored") == "true" {
			continue
		}
		name := f.Name
		if f.Tag.Get("split_words") == "true" {
			name = words.ReplaceAllString(runs.ReplaceAllString(name, "${1}_${2}"), "${1}_${2}")
		}
		settings = append(settings, setting{
			name: strings.ToUpper(name), def: f.Tag.Get("default"), desc: f.Tag.Get("desc"),
			group: f.Tag.Get("group"), oneOf: strings.Fields(f.Tag.Get("oneof")),
			min: f.Tag.Get("min"), max: f.Tag.Get("max"), typ: f.Type, field: f.Index[0],
		})
	}
	return settings
}

// variable returns the environment variable of a setting.
func variable(name string) string { return Prefix + "_" + name }

// find returns the setting of that name.
func find(settings []setting, name string) (setting, bool) {
	for _, s := range settings {
		if s.name == name {
			return s, true
		}
	}
	return setting{}, false
}

// secret reports whether the setting is never shown.
func (s setting) secret() bool { return s.typ == reflect.TypeFor[Secret]() }

// fromFile reports whether a file may hold the value, named by <NAME>_FILE.
func (s setting) fromFile() bool { return s.secret() || s.typ == reflect.TypeFor[Text]() }

// takesEmpty reports whether an empty text is a value: of texts, but not of numbers and choices.
func (s setting) takesEmpty() bool {
	return len(s.oneOf) == 0 && (s.typ.Kind() == reflect.String || s.typ.Kind() == reflect.Slice)
}

// of returns the setting's field in a struct of settings, which settings points to.
func (s setting) of(settings any) reflect.Value {
	return reflect.ValueOf(settings).Elem().Field(s.field)
}

// SecretNames returns the variables of the settings that are never shown.
func SecretNames() (names []string) {
	for _, s := range table {
		if s.secret() {
			names = append(names, variable(s.name))
		}
	}
	return names
}

// base returns the name of a setting: X, also for the X_FILE of one that a file may hold.
func base(name string) string {
	if s, ok := find(table, strings.TrimSuffix(name, "_FILE")); ok && s.fromFile() {
		return s.name
	}
	return name
}

// texts are the values of settings as they were written, by name.
type texts map[string]string

// fill parses what is given into the struct of settings that to points to. A setting that is not given, or whose text
// does not parse, keeps its value.
func fill(settings []setting, to any, given texts, failed func(name, problem string)) {
	for _, s := range settings {
		if text, ok := given[s.name]; ok {
			if err := parse(s.of(to), text); err != nil {
				failed(s.name, err.Error())
			}
		}
	}
}

// parse sets a field to what a text says, as envconfig does. Errors do not repeat the text: it may be a secret.
func parse(field reflect.Value, text string) error {
	switch to := field.Addr().Interface().(type) {
	case envconfig.Decoder:
		return to.Decode(text)
	case *string:
		*to = text
	case *bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("want true or false")
		}
		*to = b
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return errors.New("want a duration such as 500ms, 10s or 15m")
		}
		*to = d
	default:
		n, err := strconv.ParseInt(text, 0, field.Type().Bits())
		if err != nil {
			return errors.New("want a whole number")
		}
		field.SetInt(n)
	}
	return nil
}

// unset is a prefix that no environment variable has: names hold no "=".
const unset = "="

// Defaults returns the settings of an empty environment, unchecked.
func Defaults() *Config {
	var c Config
	if err := cmp.Or(envconfig.Process(unset, &c), envconfig.Process(unset, &c.Tuning)); err != nil {
		panic(fmt.Sprintf("a default does not parse: %v", err))
	}
	return &c
}

// checkBounds reports a value that is none of oneof, or outside of min and max. An empty text is left to others: it may
// be required.
func (s setting) checkBounds(settings any, failed func(problem string)) {
	v := s.of(settings)
	switch have := v.Interface().(type) {
	case List:
		if len(have) > 0 && quoted(have[0]+have[len(have)-1]) {
			failed(marks)
		}
		for _, item := range have {
			if !s.takes(item) {
				failed(s.invalid(item, "want one or more of "+strings.Join(s.oneOf, ", ")))
			}
		}
	case string:
		if quoted(have) {
			failed(marks)
		} else if !s.takes(have) && (have != "" || s.def != "") {
			failed(s.invalid(have, "want one of "+strings.Join(s.oneOf, ", ")))
		}
	}
	low, high := s.min != "" && v.Int() < s.bound(s.min), s.max != "" && v.Int() > s.bound(s.max)
	switch value := fmt.Sprint(v.Interface()); {
	case (low || high) && s.max != "":
		failed(s.invalid(value, "want "+s.min+" to "+s.max))
	case low:
		failed(s.invalid(value, "want at least "+s.min))
	}
}

// invalid says which value the setting does not take, unless it may be a secret, and what it takes.
func (s setting) invalid(value, want string) string {
	shown := strconv.Quote(value)
	if s.secret() || len(value) > longestWord || redact(s.name, value) != value {
		shown = hidden
	}
	return "invalid value " + shown + ": " + want
}

// longestWord is the length from which a value is none of the words that a setting takes, with some letters wrong, but
// something else that was pasted there.
const longestWord = 40

// marks is what to do about quotation marks. A topic would have them, escaped, and a filter would select nothing.
const marks = "remove the quotation marks: docker --env-file and others take them for a part of the value"

func quoted(value string) bool {
	return len(value) > 1 && strings.ContainsAny(value[:1], "\"'") && value[0] == value[len(value)-1]
}

func (s setting) takes(value string) bool {
	return len(s.oneOf) == 0 || slices.Contains(s.oneOf, value)
}

// bound parses a tag as the setting's type does.
func (s setting) bound(text string) int64 {
	v := reflect.New(s.typ).Elem()
	_ = parse(v, text) // a test parses all tags
	return v.Int()
}
