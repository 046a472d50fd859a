package source_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"blobfeed/source"
)

// salvage reads to the end of the listing, and leaves out what can't be read. It returns the events and what was left
// out, as "chunk from-to".
func salvage(t *testing.T, r *source.ShardReader) (ids, lost []string, err error) {
	t.Helper()
	var b source.Batch
	for range 1000 {
		err := r.Next(t.Context(), &b)
		if errors.Is(err, io.EOF) {
			return ids, lost, nil
		}
		for _, e := range b.Events {
			ids = append(ids, e.ID)
		}
		var damage *source.DamageError
		if err == nil {
			continue
		}
		if !errors.As(err, &damage) {
			return ids, lost, err
		}
		if text := err.Error(); strings.Contains(text, "corrupt at offset") {
			t.Errorf("it names the place twice: %s", text)
		}
		loss, ok, lerr := r.Loss(t.Context(), damage)
		if lerr != nil {
			t.Fatal(lerr)
		}
		if !ok {
			return ids, lost, err
		}
		r.Skip(loss)
		lost = append(lost, fmt.Sprintf("%d %d-%d", loss.Chunk, loss.From, loss.To))
	}
	t.Fatal("there is no end")
	return nil, nil, nil
}

// What can't be read is left out, exactly: everything around it comes, and its bytes are told.
func TestDamageIsLeftOut(t *testing.T) {
	a, bad, c := block("a", "a"), block("b", "b", "b"), block("c")
	h := int64(len(header()))
	at := h + int64(len(a))
	after := at + int64(len(bad))
	with := func(i int, v byte) []byte {
		b := bytes.Clone(bad)
		b[i] = v
		return b
	}
	chunk := func(middle []byte) []byte { return slices.Concat(header(), a, middle, c) }
	middle := fmt.Sprintf("0 %d-%d", at, after)
	whole := func(n int) string { return fmt.Sprintf("0 0-%d", n) }
	for name, x := range map[string]struct {
		chunks  map[string][]byte
		open    bool
		ids     string
		lost    string
		remains bool // and can't be left out
	}{
		"count":  {chunks: map[string][]byte{"00000": chunk(with(0, 0xfe))}, ids: "a a c", lost: middle},
		"record": {chunks: map[string][]byte{"00000": chunk(with(3+2*1, 60))}, ids: "a a b c", lost: middle},
		"size":   {chunks: map[string][]byte{"00000": chunk(with(1, 0xfe))}, ids: "a a c", lost: middle},
		"sync marker": {chunks: map[string][]byte{"00000": chunk(with(len(bad)-1, 0))}, ids: "a a",
			lost: fmt.Sprintf("0 %d-%d", at, after+int64(len(c)))},
		"cut off": {chunks: map[string][]byte{"00000": chunk(nil)[:at+3]}, ids: "a a",
			lost: fmt.Sprintf("0 %d-%d", at, at+3)},
		"cut off, open": {chunks: map[string][]byte{"00000": chunk(nil)[:at+3]}, open: true, ids: "a a"},
		"count, open": {chunks: map[string][]byte{"00000": chunk(with(0, 0xfe))}, open: true, ids: "a a c",
			lost: middle},
		"count, cut off": {chunks: map[string][]byte{"00000": chunk(with(0, 0xff))[:after-1]}, open: true, ids: "a a",
			remains: true},
		"no header": {chunks: map[string][]byte{"00000": []byte("<html></html>"), "00001": chunk(nil)},
			ids: "a a c", lost: whole(13)},
		"no header, last": {chunks: map[string][]byte{"00000": []byte("<html></html>")}, lost: whole(13)},
		"no header, open": {chunks: map[string][]byte{"00000": []byte("<html></html>")}, open: true, remains: true},
		"codec": {chunks: map[string][]byte{"00000": bytes.Replace(chunk(nil), []byte("record"),
			[]byte("rekord"), 1)}, lost: whole(len(chunk(nil)))},
		"missing": {chunks: map[string][]byte{"00000": chunk(nil), "00003": chunk(nil)}, ids: "a a c a a c",
			lost: "1 0-0"},
		"first is missing": {chunks: map[string][]byte{"00001": chunk(nil)}, ids: "a a c", lost: "0 0-0"},
	} {
		m := &memory{blobs: map[string][]byte{}}
		for n, b := range x.chunks {
			m.blobs[shardPath+n+".avro"] = b
		}
		r := source.New(m, source.Options{ReadSize: 16}).Shard(manifest(!x.open), 0, source.ShardPosition{})
		if err := r.Poll(t.Context(), !x.open); err != nil {
			t.Fatal(err)
		}
		ids, lost, err := salvage(t, r)
		if strings.Join(ids, " ") != x.ids || strings.Join(lost, ", ") != x.lost || (err != nil) != x.remains {
			t.Errorf("%s: events %q, lost %q, %v; want %q, %q", name, ids, lost, err, x.ids, x.lost)
		}
		if x.remains {
			continue
		}
		// Nothing that was left out comes again to one who goes on there.
		if end := r.Position(); end.Chunk > 0 || end.Offset > 0 {
			if _, ok := m.blobs[fmt.Sprintf("%s%05d.avro", shardPath, end.Chunk)]; !ok {
				t.Errorf("%s: the position %+v is in no chunk", name, end)
			}
		}
		again := source.New(m, source.Options{}).Shard(manifest(!x.open), 0, r.Position())
		if err := again.Poll(t.Context(), !x.open); err != nil {
			t.Fatal(err)
		}
		if ids, lost, err := salvage(t, again); len(ids)+len(lost) > 0 || err != nil {
			t.Errorf("%s, again: %q, %q, %v", name, ids, lost, err)
		}
	}
}

// A copy that was damaged on its way is read anew by the next attempt.
func TestDamagedCopy(t *testing.T) {
	good := slices.Concat(header(), block("a"), block("b"))
	bad := bytes.Clone(good)
	bad[len(bad)-1]++
	m := &memory{blobs: map[string][]byte{shardPath + "00000.avro": bad}}
	r := source.New(m, source.Options{}).Shard(manifest(true), 0, source.ShardPosition{})
	if err := r.Poll(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	ids, err := drain(t, r)
	if err == nil {
		t.Fatal("no error")
	}
	m.blobs[shardPath+"00000.avro"] = good
	rest, err := drain(t, r)
	if ids = append(ids, rest...); err != nil || strings.Join(ids, " ") != "a b" {
		t.Errorf("%q, %v", ids, err)
	}
}

// A position that makes no sense can't be repaired by leaving something out: what is there may have been read before.
func TestPositionIsNotLeftOut(t *testing.T) {
	m := &memory{blobs: map[string][]byte{shardPath + "00000.avro": append(header(), block("a")...)}}
	for _, from := range []source.ShardPosition{{Offset: 3}, {Offset: 1 << 20}} {
		r := source.New(m, source.Options{}).Shard(manifest(true), 0, from)
		if err := r.Poll(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if ids, lost, err := salvage(t, r); err == nil || len(ids)+len(lost) > 0 {
			t.Errorf("%+v: %q, %q, %v", from, ids, lost, err)
		}
	}
}

// An old listing that comes once more, from wherever it was kept, does not stop the reader: the next attempt lists
// anew.
func TestOldListing(t *testing.T) {
	chunk, whole := shardPath+"00000.avro", slices.Concat(header(), block("a"), block("b"))
	old, next := whole[:len(whole)-len(block("b"))], slices.Concat(header(), block("c"))
	m := &memory{blobs: map[string][]byte{chunk: whole}}
	r := source.New(m, source.Options{}).Shard(manifest(false), 0, source.ShardPosition{})
	poll := func() {
		t.Helper()
		if err := r.Poll(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	poll()
	ids, err := drain(t, r)
	if err != nil || len(ids) != 2 {
		t.Fatalf("%q, %v", ids, err)
	}
	m.blobs[chunk] = old
	poll()
	m.blobs[chunk], m.blobs[shardPath+"00001.avro"] = whole, next
	if _, err := drain(t, r); err == nil {
		t.Fatal("what is here does not fit the listing, and there is no error")
	}
	if ids, err = drain(t, r); err != nil || strings.Join(ids, " ") != "c" {
		t.Errorf("%q, %v", ids, err)
	}
}

// The chunk that was being read is gone, and nothing follows it: going on leaves it out, and stands at the end of what
// is left.
func TestLastChunkIsGone(t *testing.T) {
	m := &memory{blobs: map[string][]byte{shardPath + "00000.avro": append(header(), block("a")...)}}
	r := source.New(m, source.Options{}).Shard(manifest(false), 0, source.ShardPosition{Chunk: 1, Offset: 57})
	if err := r.Poll(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	ids, lost, err := salvage(t, r)
	if err != nil || len(ids) > 0 || strings.Join(lost, ", ") != "1 57-57" {
		t.Fatalf("events %q, lost %q, %v", ids, lost, err)
	}
	m.blobs[shardPath+"00001.avro"] = append(header(), block("b")...)
	if err := r.Poll(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if ids, lost, err = salvage(t, r); err != nil || strings.Join(ids, " ") != "b" || len(lost) > 0 {
		t.Errorf("events %q, lost %q, %v", ids, lost, err)
	}
}
