package verify

import "testing"

// What a record leaves of its key is read from any envelope.
func TestRow(t *testing.T) {
	blob := `{"blob_type": "BlockBlob", "content_length": 5, "etag": "0x8D", "path": "c/b"}`
	there := Row{ETag: "0x8D", Length: 5, Type: "BlockBlob"}
	for name, c := range map[string]struct {
		value string
		in    Values
		want  Row
		bad   bool
	}{
		"wrapped":            {value: `{"after": ` + blob + `, "key": ["c/b"]}`, want: there},
		"a deletion":         {value: `{"after": null, "key": ["c/b"]}`, want: Row{Deleted: true}},
		"no bytes":           {value: "", want: Row{Deleted: true}},
		"no bytes, key_only": {value: "", in: Values{None: true}, want: Row{}},
		"row":                {value: blob, want: there},
		"bare": {value: `{"__crdb__": {"updated": "x"}, ` + blob[1:], in: Values{Bare: true},
			want: there},
		"bare deletion": {value: `{"__crdb__": {}, "account": null, "path": "c/b"}`, in: Values{Bare: true},
			want: Row{Deleted: true}},
		"without columns":     {value: `{"after": {"path": "c/b"}}`, want: Row{}},
		"enriched":            {value: `{"payload": {"after": ` + blob + `, "op": "c"}, "schema": {}}`, want: there},
		"enriched deletion":   {value: `{"after": null, "before": ` + blob + `, "op": "d"}`, want: Row{Deleted: true}},
		"garbage":             {value: "garbage", bad: true},
		"a length of letters": {value: `{"after": {"content_length": "x", "path": "c/b"}}`, bad: true},
	} {
		got, err := (&Record{Key: []byte("k"), Value: []byte(c.value)}).Row(c.in)
		if got != c.want || (err != nil) != c.bad {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, err := (&Record{Key: []byte("k")}).Row(Values{None: true}); !got.Deleted || err != nil {
		t.Errorf("a tombstone: %+v, %v", got, err)
	}
}
