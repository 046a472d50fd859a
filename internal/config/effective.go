package config

import (
	"fmt"
	"reflect"
	"strings"
)

// Effective is a setting as it is in force.
type Effective struct {
	Name  string `json:"name"`
	Value string `json:"value"` // "(set)" for a secret
	From  string `json:"from"`  // default, environment, file <path>, preset <name>
}

// Effective returns all settings, in the order of the reference.
func (c *Config) Effective() (all []Effective) {
	for _, s := range describe(reflect.TypeFor[Config]()) {
		e := Effective{Name: s.name, From: c.origins[s.field]}
		switch v := reflect.ValueOf(c).Elem().Field(s.field).Interface().(type) {
		case List:
			shown := make([]string, len(v))
			for i, item := range v {
				shown[i] = redact(s.name, item)
			}
			e.Value = strings.Join(shown, ",")
		case *bool: // nil: it depends on others
			if v != nil {
				e.Value = fmt.Sprint(*v)
			}
		default:
			e.Value = redact(s.name, fmt.Sprint(v)) // a Secret masks itself
		}
		if e.From == "" {
			e.From = "default"
		}
		all = append(all, e)
	}
	return all
}

// SecretNames returns the names of the settings that are never shown.
func SecretNames() (names []string) {
	for _, s := range describe(reflect.TypeFor[Config]()) {
		if s.typ == reflect.TypeFor[Secret]() {
			names = append(names, s.name)
		}
	}
	return names
}
