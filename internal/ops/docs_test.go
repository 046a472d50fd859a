package ops

import (
	"reflect"
	"strings"
	"testing"
)

// The manual names every field of /status, and so of bridge status --output json.
func TestManualHasEveryField(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "../../docs/cli.md"), "\n## status\n")
	section, _, _ = strings.Cut(section, "\n## ")
	fields := fieldsOf(reflect.TypeFor[Status](), map[reflect.Type]bool{})
	if len(fields) < 60 {
		t.Fatalf("found the fields %q", fields)
	}
	for _, f := range fields {
		if !strings.Contains(section, "`"+f+"`") && !strings.Contains(section, "."+f+"`") {
			t.Errorf("docs/cli.md does not name %s", f)
		}
	}
}

// fieldsOf returns the JSON names of a type's fields, and of those of the types in it.
func fieldsOf(of reflect.Type, seen map[reflect.Type]bool) (names []string) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || seen[of] {
		return nil
	}
	seen[of] = true
	for f := range of.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
		if f.IsExported() {
			names = append(names, fieldsOf(f.Type, seen)...)
		}
	}
	return names
}
