package verify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Differences says how a record differs from the expected one of its event: in members of the value, such as
// after.etag, in headers, and in the timestamp. It names a few of them.
func (v *Replay) Differences(got, want *Record) (parts []string) {
	x, y := content(got), content(want)
	if v.made {
		for _, name := range [...]string{"ts_ms", "ts_ns"} {
			delete(x, name)
			delete(y, name)
		}
	}
	parts = differences(nil, "", x, y)
	if len(parts) == 0 && !bytes.Equal(got.Value, want.Value) && !v.made {
		parts = append(parts, "the bytes of the value")
	}
	headers := func(r *Record) map[string]any {
		all := map[string]any{}
		for _, h := range r.Headers {
			if v.mode != ReplayRepeats || h.Key != "epoch" {
				all[h.Key] = string(h.Value)
			}
		}
		return all
	}
	parts = differences(parts, "header ", headers(got), headers(want))
	if got.Millis != want.Millis && got.Millis != 0 && want.Millis != 0 {
		parts = append(parts, fmt.Sprintf("timestamp is %d, expected %d", got.Millis, want.Millis))
	}
	if more := len(parts) - examples; more > 0 {
		parts = append(parts[:examples], fmt.Sprintf("and %d more", more))
	}
	return parts
}

// content returns the members of a value, or the value itself as one member.
func content(r *Record) (members map[string]any) {
	text, _ := r.Avro.read(r.Value)
	if text == nil {
		text = r.Value
	}
	if json.Unmarshal(text, &members) != nil {
		return map[string]any{"value": string(text)}
	}
	return members
}

// differences appends the members in which two objects differ, in their order. A null is like no member.
func differences(parts []string, path string, x, y map[string]any) []string {
	names := maps.Clone(x)
	maps.Copy(names, y)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, b := x[name], y[name]
		inner, isObject := a.(map[string]any)
		other, both := b.(map[string]any)
		if isObject && both {
			parts = differences(parts, path+name+".", inner, other)
			continue
		}
		was, is := quoted(b), quoted(a)
		if was != is {
			parts = append(parts, fmt.Sprintf("%s%s is %.60s, expected %.60s", path, name, is, was))
		}
	}
	return parts
}

func quoted(v any) string {
	text, _ := json.Marshal(v) // it was JSON, or is a string
	return string(text)
}
