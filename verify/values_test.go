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
			`e 0A 1.0000000002  row`},
		{`{"after": null, "before": ` + row + `, "key": ["c/b"], "updated": "1.0000000002"}`,
			`  1.0000000002`},
		{`{"__crdb__": {"updated": "1.0000000002"}, "event_id": "e", "path": "c/b", "sequencer": "0A"}`,
			`e 0A 1.0000000002  row`},
		{`{"after": ` + row + `, "op": "c", "source": {"ts_hlc": "1.0000000002"}, "ts_ns": 5}`,
			`e 0A 1.0000000002  row`},
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
		if d.blob != nil {
			got += " row"
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
		for _, name := range unproved(g) {
			found += name + " "
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
