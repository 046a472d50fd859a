package ocf

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	// hamba is archived and has open advisories on hostile input (GO-2026-5046, -5047, -5048): it is an oracle on bytes
	// of our own here, and nothing but tests imports it.
	"github.com/hamba/avro/v2"
)

// oracle encodes and decodes events of one schema with hamba.
type oracle struct {
	text   string
	schema *avro.RecordSchema
	plan   *Plan
}

var versions = []string{"v1", "v4", "v5", "v6"}

func newOracle(t testing.TB, text string) *oracle {
	t.Helper()
	s, err := avro.ParseWithCache(text, "", &avro.SchemaCache{}) // the global cache would mix the versions' types
	if err != nil {
		t.Fatal(err)
	}
	plan, err := CompilePlan(text)
	if err != nil {
		t.Fatal(err)
	}
	return &oracle{text, s.(*avro.RecordSchema), plan}
}

func schemaText(t testing.TB, version string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/schema-" + version + ".avsc")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// random makes a value of a type as hamba encodes it.
func random(rng *rand.Rand, s avro.Schema) any {
	switch s := s.(type) {
	case *avro.RefSchema:
		return random(rng, s.Schema())
	case *avro.RecordSchema:
		m := map[string]any{}
		for _, f := range s.Fields() {
			m[f.Name()] = random(rng, f.Type())
		}
		return m
	case *avro.EnumSchema:
		return s.Symbols()[rng.IntN(len(s.Symbols()))]
	case *avro.MapSchema:
		m := map[string]any{}
		for i := range rng.IntN(4) {
			m[fmt.Sprint("key", i, strings.Repeat("k", rng.IntN(80)))] = random(rng, s.Values())
		}
		return m
	case *avro.UnionSchema:
		b := s.Types()[rng.IntN(len(s.Types()))]
		switch b := b.(type) {
		case *avro.NullSchema:
			return nil
		case avro.NamedSchema:
			return map[string]any{b.FullName(): random(rng, b)}
		}
		return map[string]any{string(b.Type()): random(rng, b)}
	}
	if s.Type() == avro.Long {
		return rng.Int64() >> rng.IntN(64) * (1 - 2*rng.Int64N(2))
	}
	return strings.Repeat("é&<\"x\x00", rng.IntN(12)) // of any length up to two bytes of varint
}

func (o *oracle) encode(t testing.TB, v any) []byte {
	t.Helper()
	b, err := avro.Marshal(o.schema, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// decode decodes a record with hamba and builds the Event that we want from the generic value.
func (o *oracle) decode(t testing.TB, b []byte) Event {
	t.Helper()
	var v any
	if err := avro.Unmarshal(o.schema, b, &v); err != nil {
		t.Fatal(err)
	}
	m := v.(map[string]any)
	d := m["data"].(map[string]any)
	text := func(v any) string {
		if m, ok := v.(map[string]any); ok { // the branch of a union
			for _, v = range m {
			}
		}
		s, _ := v.(string)
		return s
	}
	pairs := func(v any) (to []Pair) {
		if m, ok := v.(map[string]any); ok && m["map"] != nil {
			if inner, ok := m["map"].(map[string]any); ok {
				v = inner
			}
		}
		m, _ := v.(map[string]any)
		for k, v := range m {
			to = append(to, Pair{k, v.(string)})
		}
		return to
	}
	var e Event
	for _, f := range Fields {
		from := m
		if f.data {
			from = d
		}
		switch v := from[f.Name]; f.Shape {
		case Text:
			f.SetText(&e, text(v))
		case Number:
			f.setNumber(&e, v.(int64), true)
		case Map:
			*in[[]Pair](&e, f.at) = pairs(v)
		}
	}
	if u, ok := d["blobPropertiesUpdated"].(map[string]any); ok {
		for k, v := range u["map"].(map[string]any) {
			c := v.(map[string]any)
			e.BlobPropertiesUpdated = append(e.BlobPropertiesUpdated,
				PropertyChange{k, text(c["current"]), text(c["previous"])})
		}
	}
	if u, ok := d["blobTagsUpdated"].(map[string]any); ok {
		for k, v := range u["map"].(map[string]any) {
			e.BlobTagsUpdated = append(e.BlobTagsUpdated, TagSet{k, pairs(v)})
		}
	}
	return e
}

// sorted returns a copy of e that compares with reflect.DeepEqual: maps in the order of keys, no empty slices.
func sorted(e Event) Event {
	pairs := func(p []Pair) []Pair {
		p = slices.Clone(p)
		slices.SortFunc(p, func(x, y Pair) int { return cmp.Compare(x.Name, y.Name) })
		return append([]Pair(nil), p...)
	}
	e.PreviousInfo, e.AsyncOperationInfo = pairs(e.PreviousInfo), pairs(e.AsyncOperationInfo)
	e.RestorePointMarker = pairs(e.RestorePointMarker)
	props := append([]PropertyChange(nil), e.BlobPropertiesUpdated...)
	slices.SortFunc(props, func(x, y PropertyChange) int { return cmp.Compare(x.Name, y.Name) })
	tags := append([]TagSet(nil), e.BlobTagsUpdated...)
	for i := range tags {
		tags[i].Tags = pairs(tags[i].Tags)
	}
	slices.SortFunc(tags, func(x, y TagSet) int { return cmp.Compare(x.Name, y.Name) })
	e.BlobPropertiesUpdated, e.BlobTagsUpdated = props, tags
	e.Extra = append([]Pair(nil), e.Extra...)
	return e
}

// agree decodes n random records with both decoders. The Event is reused, so what is stale in it would show.
func (o *oracle) agree(t testing.TB, rng *rand.Rand, n int, ev *Event) {
	t.Helper()
	var data bytes.Buffer
	var want []Event
	for range n {
		b := o.encode(t, random(rng, o.schema))
		data.Write(b)
		want = append(want, sorted(o.decode(t, b)))
	}
	rest, err := data.String(), error(nil)
	for i := range want {
		if rest, err = o.plan.Decode(rest, ev); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		if got := sorted(*ev); !reflect.DeepEqual(got, want[i]) {
			t.Fatalf("record %d:\n got %+v\nwant %+v", i, got, want[i])
		}
	}
	if rest != "" {
		t.Fatalf("%d bytes left", len(rest))
	}
}

// All writer schemas ever seen decode as another decoder does it.
func TestVersionsAgainstHamba(t *testing.T) {
	var ev Event
	for _, v := range versions {
		t.Run(v, func(t *testing.T) { newOracle(t, schemaText(t, v)).agree(t, rand.New(rand.NewPCG(1, 2)), 300, &ev) })
	}
}

func FuzzDecodeAgainstHamba(f *testing.F) {
	var oracles []*oracle
	for _, v := range versions {
		oracles = append(oracles, newOracle(f, schemaText(f, v)))
	}
	for i := range oracles {
		f.Add(uint64(i), uint64(7), uint8(i))
	}
	f.Fuzz(func(t *testing.T, seed1, seed2 uint64, version uint8) {
		var ev Event
		oracles[int(version)%len(oracles)].agree(t, rand.New(rand.NewPCG(seed1, seed2)), 4, &ev)
	})
}
