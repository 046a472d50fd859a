package verify

import (
	"fmt"
	"strings"
	"testing"
)

// Values of every envelope say the same as headers would.
func TestDocument(t *testing.T) {
	const row = `{"event_id": "e", "path": "c/b", "sequencer": "0A"}`
	for _, c := range []struct{ value, want string }{
		{`{"after": ` + row + `, "before": {"x": 1}, "updated": "1.0000000002"}`,
			`e 0A 1.0000000002  before after`},
		{`{"after": null, "before": ` + row + `, "key": ["c/b"], "updated": "1.0000000002"}`,
			`  1.0000000002  before`},
		{`{"__crdb__": {"updated": "1.0000000002"}, "event_id": "e", "path": "c/b", "sequencer": "0A"}`,
			`e 0A 1.0000000002  row c/b`},
		{`{"after": ` + row + `, "op": "c", "source": {"ts_hlc": "1.0000000002"}, "ts_ns": 5}`,
			`e 0A 1.0000000002  after`},
		{`{"payload": {"after": null, "op": "d", "source": {"event_id": "e", "ts_hlc": "1.0000000002"}}, "schema": {}}`,
			`e  1.0000000002 `},
		{`{"resolved":"1.0000000002"}`, `   1.0000000002`},
		{`{"__crdb__":{"resolved":"1.0000000002"}}`, `   1.0000000002`},
		{`{"payload": {"resolved":"1.0000000002"}}`, `   1.0000000002`},
		{"\x00\x00\x00\x00\x01{", `   `},
		{`{"after": 5, "updated": "1.0000000002"`, `   `},
		{``, `   `},
		{`{"updated": 7}`, `   `},
		{`["updated"]`, `   `},
		{`{"after": {"event_id": 7}, "updated": "1"}`, `   `},
	} {
		d := parseDocument([]byte(c.value))
		got := fmt.Sprintf("%s %s %s %s", d.id, d.sequence, d.updated, d.resolved)
		for name, is := range map[string]bool{" before": d.before != nil} {
			if is {
				got += name
			}
		}
		if d.after != nil {
			got += " after"
		}
		if d.row {
			got += " row " + d.path
		}
		if strings.TrimRight(got, " ") != strings.TrimRight(c.want, " ") {
			t.Errorf("%s\ngot  %q\nwant %q", c.value, got, c.want)
		}
	}
}

// Without headers the value tells what it can, and what it can't is a failure, not a pass.
func TestWithoutHeaders(t *testing.T) {
	run := func(rs []Record) (found, all string) {
		g := All(NewUnique(), NewSequence(), NewResolved(partitions))
		for _, r := range rs {
			g.Note(r)
		}
		for _, c := range g.Summary().Checks {
			if !c.OK() {
				found += c.Name + " "
			}
		}
		return found, text(g.Failures())
	}
	for name, c := range map[string]struct {
		fault func(rs []Record) []Record
		found string
		says  string
	}{
		"none":           {func(rs []Record) []Record { return rs }, "", ""},
		"an event twice": {func(rs []Record) []Record { return append(rs[:2:2], rs[1:]...) }, "unique ", "is repeated"},
		"a deletion twice": {func(rs []Record) []Record { return append(rs[:1:1], rs...) },
			"unique ", "event 1590000000000000000.0000000000 is repeated"},
		"nothing tells": {func(rs []Record) []Record { rs[5].Value = []byte(`{"after": null}`); return rs },
			"unique resolved ", "neither event_id nor updated"},
		"an old time": {func(rs []Record) []Record {
			rs[60].Value = []byte(strings.Replace(string(rs[60].Value), `"updated": "159000`, `"updated": "158000`, 1))
			return rs
		}, "resolved ", "comes after the marker"},
		"out of sequence": {func(rs []Record) []Record { rs[8], rs[16] = rs[16], rs[8]; return rs }, "sequence ",
			"comes after"},
	} {
		if found, all := run(c.fault(bareTopic())); found != c.found || !strings.Contains(all, c.says) {
			t.Errorf("%s: found by %q, want %q and %q\n%s", name, found, c.found, c.says, all)
		}
	}
}

func TestBefore(t *testing.T) {
	value := func(text string) Record { return Record{Topic: "t", Key: []byte("k"), Value: []byte(text)} }
	for name, c := range map[string]struct {
		values  []string
		checked int64
		says    string
	}{
		"no before": {[]string{`{"after": {"a": 1}}`, `{"after": {"a": 2}}`}, 0, ""},
		"null":      {[]string{`{"after": {"a": 1}, "before": null}`, `{"after": {"a": 2}, "before": null}`}, 0, ""},
		"the same": {[]string{`{"after": {"a": 1, "b": "x"}}`,
			`{"after": null, "before": {"b": "x", "a": 1}}`}, 1, ""},
		"a part": {[]string{`{"after": {"a": 1, "b": "x"}}`, `{"after": null, "before": {"b": "x"}}`}, 1, ""},
		"nulls": {[]string{`{"after": {"a": null, "b": "x"}}`,
			`{"after": null, "before": {"b": null, "a": 1}}`}, 1, ""},
		"another": {[]string{`{"after": {"a": 1, "b": "x"}}`,
			`{"after": null, "before": {"b": "y", "a": 1}}`}, 1, "before has another b"},
		"ignored": {[]string{`{"after": {"etag": 1}}`, `{"after": null, "before": {"etag": 2}}`}, 0, ""},
		"after a deletion": {[]string{`{"after": {"a": 1}}`, `{"after": null}`,
			`{"after": {"a": 2}, "before": {"a": 5}}`}, 0, ""},
		"a tombstone apart": {[]string{`{"after": {"a": 1}}`, "", `{"after": null, "before": {"a": 2}}`}, 1,
			"before has another a"},
		"of the one before": {[]string{`{"after": {"a": 1}}`, `{"after": {"a": 2}, "before": {"a": 1}}`,
			`{"after": {"a": 3}, "before": {"a": 1}}`}, 2, "another a"},
		"enriched, payload": {[]string{`{"payload": {"after": {"a": 1}}}`,
			`{"payload": {"after": null, "before": {"a": 2}}}`}, 1, "another a"},
		"append blob of the first schema": {[]string{`{"after": {"blob_type": "BlockBlob", "schema_version": 1}}`,
			`{"after": null, "before": {"blob_type": "AppendBlob", "a": 2}}`}, 1, ""},
		"append blob, unknown schema": {[]string{`{"after": {"blob_type": "BlockBlob", "schema_version": null}}`,
			`{"after": null, "before": {"blob_type": "AppendBlob"}}`}, 1, ""},
		"another type of the first schema": {[]string{`{"after": {"blob_type": "PageBlob", "schema_version": 1}}`,
			`{"after": null, "before": {"blob_type": "AppendBlob"}}`}, 1, "another blob_type"},
		"page blob of the first schema": {[]string{`{"after": {"blob_type": "BlockBlob", "schema_version": 1}}`,
			`{"after": null, "before": {"blob_type": "PageBlob"}}`}, 1, "another blob_type"},
		"another type of a later schema": {[]string{`{"after": {"blob_type": "BlockBlob", "schema_version": 3}}`,
			`{"after": null, "before": {"blob_type": "AppendBlob"}}`}, 1, "another blob_type"},
		"marker, other keys": {[]string{`{"after": {"a": 1}}`, "marker", "other"}, 0, ""},
	} {
		v := NewBefore(Unseen...)
		for i, text := range c.values {
			r := value(text)
			r.Offset = int64(i)
			switch text {
			case "":
				r.Value = nil
			case "marker":
				r = Record{Topic: "t", Value: []byte(`{"resolved":"1.0000000000"}`)}
			case "other":
				r.Key, r.Value = []byte("other"), []byte(`{"after": null, "before": {"a": 2}}`)
			}
			v.Note(r)
		}
		got := text(v.Failures())
		if v.Checked() != c.checked || (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %d checked, want %d and %q\n%s", name, v.Checked(), c.checked, c.says, got)
		}
	}
}

func TestTable(t *testing.T) {
	row := []byte(`{"__crdb__": {"updated": "1.0000000000"}, "path": "c/b"}`)
	for name, c := range map[string]struct {
		r    Record
		says string
	}{
		"row":        {Record{Key: []byte(`["c/b"]`), Value: row}, ""},
		"object key": {Record{Key: []byte(`{"path": "c/b"}`), Value: row}, ""},
		"string key": {Record{Key: []byte(`c/b`), Value: row}, ""},
		"tombstone":  {Record{Key: []byte(`c/b`)}, ""},
		"avro":       {Record{Key: []byte(`c/b`), Value: []byte("\x00\x00\x00\x00\x01xy")}, ""},
		"marker":     {mark(0, 1), "a table has no markers"},
		"empty":      {Record{Key: []byte(`c/b`), Value: []byte{}}, "readers take it for an update"},
		"wrapped": {Record{Key: []byte(`c/b`), Value: []byte(`{"after": {"path": "c/b"}}`)},
			"the value is not a row"},
		"another's row":  {Record{Key: []byte(`c/a`), Value: row}, `the row is of another path: "c/b"`},
		"another's rows": {Record{Key: []byte(`["c/a"]`), Value: row}, `the row is of another path: "c/b"`},
	} {
		v := NewTable()
		v.Note(c.r)
		if got := text(v.Failures()); (got == "") != (c.says == "") || !strings.Contains(got, c.says) ||
			v.Checked() != 1 {
			t.Errorf("%s: want %q: %s", name, c.says, got)
		}
	}
}
