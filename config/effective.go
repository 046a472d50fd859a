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
		case []string:
			e.Value = strings.Join(v, ",")
		case *bool: // nil: it depends on others
			if v != nil {
				e.Value = fmt.Sprint(*v)
			}
		default:
			e.Value = fmt.Sprint(v) // a Secret masks itself
		}
		if e.From == "" {
			e.From = "default"
		}
		// These may be pasted with a signature or a user in them.
		if strings.HasSuffix(s.name, "_URL") {
			urls := strings.Split(e.Value, ",")
			for i, u := range urls {
				urls[i] = redactURL(u)
			}
			e.Value = strings.Join(urls, ",")
		}
		all = append(all, e)
	}
	return all
}

// redactURL hides a query and a user, which are refused elsewhere, but shown here before that.
func redactURL(text string) string {
	text, query, _ := strings.Cut(text, "?")
	if query != "" {
		text += "?(hidden)"
	}
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		authority, path, _ := strings.Cut(rest, "/")
		if i := strings.LastIndex(authority, "@"); i >= 0 {
			return scheme + "://(hidden)@" + authority[i+1:] + "/" + path
		}
	}
	return text
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
