package ocf

import (
	"reflect"
	"testing"
)

// Each slot of a text or a map has a field of its own, and each such field of Event has a slot: a case that is missing
// in text or pairs would put one value into the field of another.
func TestEverySlotHasItsOwnField(t *testing.T) {
	var ev Event
	fields := map[any]slot{}
	add := func(to slot, field any) {
		if other, taken := fields[field]; taken {
			t.Errorf("slots %d and %d share a field", other, to)
		}
		fields[field] = to
	}
	for to := lastLong + 1; to < lastText; to++ {
		add(to, ev.text(to))
	}
	for to := lastText + 1; to < lastPairs; to++ {
		add(to, ev.pairs(to))
	}
	v := reflect.ValueOf(&ev).Elem()
	for i := range v.NumField() {
		name, field := v.Type().Field(i).Name, v.Field(i)
		switch field.Addr().Interface().(type) {
		case *string, *[]Pair:
			if _, ok := fields[field.Addr().Interface()]; !ok && name != "Extra" {
				t.Errorf("no slot fills the field %s", name)
			}
		}
	}
}

// Every slot has a name in the feed.
func TestEverySlotHasAName(t *testing.T) {
	named := map[slot]bool{}
	for _, slots := range []map[string]slot{envelopeSlots, dataSlots} {
		for name, to := range slots {
			if named[to] {
				t.Errorf("%s has the slot of another name", name)
			}
			named[to] = true
		}
	}
	for to := range toBlobTagsUpdated + 1 {
		if end := to == lastLong || to == lastText || to == lastPairs; named[to] == end {
			t.Errorf("slot %d: a name %t, the end of a group %t", to, named[to], end)
		}
	}
}
