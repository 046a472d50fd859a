package ocf

import (
	"reflect"
	"strings"
	"testing"
)

// Each field of Event has a name in the feed and a place of its own: the one whose name is the same.
func TestFieldsAreWhereTheirNamesSay(t *testing.T) {
	var ev Event
	v := reflect.ValueOf(&ev).Elem()
	for _, f := range Fields {
		if f.Column == "extra" {
			continue
		}
		at := v.FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, f.Name) })
		switch f.Shape {
		case Text:
			if f.SetText(&ev, f.Name); !at.IsValid() || at.String() != f.Name {
				t.Errorf("the text of %s is elsewhere", f.Name)
			}
		case Number:
			f.setNumber(&ev, 7, true)
			if n, ok := f.Number(&ev); !at.IsValid() || at.Int() != 7 || n != 7 || !ok {
				t.Errorf("the number of %s is elsewhere", f.Name)
			}
		default:
			if !at.IsValid() || in[[]Pair](&ev, f.at) != (*[]Pair)(at.Addr().UnsafePointer()) {
				t.Errorf("the map of %s is elsewhere", f.Name)
			}
		}
	}
	if n, shaped := len(Fields), v.NumField()-1; n != shaped { // but for the flag
		t.Errorf("%d fields, want %d", n, shaped)
	}
	if len(envelopeFields)+len(dataFields) != len(Fields)-1 {
		t.Error("two fields have one name")
	}
}
