package ocf

import (
	"reflect"
	"testing"
)

// An event that is filled again holds nothing of the block before, not even behind the ends of its slices.
func TestResetKeepsNoStrings(t *testing.T) {
	pairs := func() []Pair { return []Pair{{"name", "value"}, {"other", "value"}} }
	ev := Event{
		Topic: "topic", PreviousInfo: pairs(), AsyncOperationInfo: pairs(), RestorePointMarker: pairs(), Extra: pairs(),
		BlobPropertiesUpdated: []PropertyChange{{"name", "current", "previous"}},
		BlobTagsUpdated:       []TagSet{{"previous", pairs()}, {"current", pairs()}},
	}
	ev.reset()
	var strings func(v reflect.Value)
	strings = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			if v.Len() > 0 {
				t.Errorf("%q is still held", v.String())
			}
		case reflect.Struct:
			for _, f := range v.Fields() {
				strings(f)
			}
		case reflect.Slice:
			if v.Len() > 0 || v.Cap() == 0 {
				t.Errorf("a slice of %s has length %d, capacity %d", v.Type().Elem(), v.Len(), v.Cap())
			}
			for i := range v.Cap() {
				strings(v.Slice(0, v.Cap()).Index(i))
			}
		}
	}
	strings(reflect.ValueOf(ev))
}
