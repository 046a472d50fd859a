package ocf

import (
	"reflect"
	"strings"
	"unsafe"
)

// Field is a field of the feed, or Extra, as a tag of Event describes it.
type Field struct {
	Name   string // in the feed's schema; "" of Extra
	Column string // in rows; "" if they have none for it
	Shape  Shape

	Deletion bool   // a deletion says what the value was
	Previous string // the name in previousInfo of what the value was
	Property string // the name in blobPropertiesUpdated, which says what the value was

	data bool // it is in the record "data"
	at   uintptr
	has  uintptr // of the flag that says that a number is there; 0: a number is, unless it is 0
}

// Shape is the kind of value that a field holds.
type Shape uint8

// The shapes.
const (
	Text Shape = iota
	Number
	Map        // []Pair
	Properties // []PropertyChange
	Tags       // []TagSet
)

var shapes = map[reflect.Type]Shape{
	reflect.TypeFor[string](): Text, reflect.TypeFor[int64](): Number, reflect.TypeFor[[]Pair](): Map,
	reflect.TypeFor[[]PropertyChange](): Properties, reflect.TypeFor[[]TagSet](): Tags,
}

// Fields are the fields of an Event that a feed fills, in its order.
var Fields = fields(reflect.TypeFor[Event]())

func fields(event reflect.Type) (all []*Field) {
	for sf := range event.Fields() {
		shape, ok := shapes[sf.Type]
		if !ok {
			continue // a flag
		}
		f := &Field{Column: sf.Tag.Get("column"), Shape: shape, at: sf.Offset, Deletion: sf.Tag.Get("deletion") != "",
			Previous: sf.Tag.Get("previous"), Property: sf.Tag.Get("property")}
		f.Name, f.data = strings.CutPrefix(sf.Tag.Get("feed"), "data.")
		if flag, ok := event.FieldByName("Has" + sf.Name); ok {
			f.has = flag.Offset
		}
		all = append(all, f)
	}
	return all
}

// known returns the fields of the record "data", or those around it, by name.
func known(data bool) map[string]*Field {
	byName := map[string]*Field{}
	for _, f := range Fields {
		if f.data == data && f.Name != "" {
			byName[f.Name] = f
		}
	}
	return byName
}

var envelopeFields, dataFields = known(false), known(true)

// in returns the place of a value in an event. T must be the type of the field there.
func in[T any](ev *Event, at uintptr) *T { return (*T)(unsafe.Add(unsafe.Pointer(ev), at)) }

// Text returns the text that an event has in the field, for fields of that shape.
func (f *Field) Text(ev *Event) string {
	f.must(Text)
	return *in[string](ev, f.at)
}

// SetText changes the text.
func (f *Field) SetText(ev *Event, text string) {
	f.must(Text)
	*in[string](ev, f.at) = text
}

// Number returns the number that an event has in the field, for fields of that shape. Ok is false if there is none.
func (f *Field) Number(ev *Event) (n int64, ok bool) {
	f.must(Number)
	n = *in[int64](ev, f.at)
	if f.has == 0 {
		return n, n != 0
	}
	return n, *in[bool](ev, f.has)
}

// Map returns the entries that an event has in the field, for fields of that shape.
func (f *Field) Map(ev *Event) []Pair {
	f.must(Map)
	return *in[[]Pair](ev, f.at)
}

// Copy copies the text or the number of the field from one event to another.
func (f *Field) Copy(to, from *Event) {
	if f.Shape == Text {
		*in[string](to, f.at) = *in[string](from, f.at)
		return
	}
	n, ok := f.Number(from)
	f.setNumber(to, n, ok)
}

func (f *Field) setNumber(ev *Event, n int64, ok bool) {
	*in[int64](ev, f.at) = n
	if f.has != 0 {
		*in[bool](ev, f.has) = ok
	}
}

func (f *Field) must(have Shape) {
	if f.Shape != have {
		panic("the field " + f.Name + " has another shape")
	}
}

// action returns how to read a value of type s into the field. ok is false if s does not fit.
func (f *Field) action(s *schema) (a action, ok bool) {
	a.typ = s
	switch {
	case s.kind == kUnion:
		return compileUnion(s, f.action)
	case s.kind == kNull:
		a.op = opNull
	case f.Shape == Number && s.kind == kInt:
		a.op = opLong
	case f.Shape == Text && s.kind == kString:
		a.op = opString
	case f.Shape == Text && s.kind == kEnum:
		a.op = opSymbol
	case f.Shape == Map && isTextMap(s):
		a.op = opPairs
	case f.Shape == Properties && s.kind == kMap && isChange(s.items):
		a.op = opProperties
	case f.Shape == Tags && s.kind == kMap && isTextMap(s.items):
		a.op = opTags
	default:
		return a, false
	}
	return a, true
}

// isText reports whether a value of the type is clearly a text: a string, a symbol, or null where there is none.
func isText(s *schema) bool {
	if s.kind == kUnion {
		for _, b := range s.union {
			if b.kind != kNull && !isText(b) {
				return false
			}
		}
		return true
	}
	return s.kind == kString || s.kind == kEnum
}

func isTextMap(s *schema) bool   { return s.kind == kMap && isText(s.items) }
func isStringMap(s *schema) bool { return s.kind == kMap && s.items.kind == kString }

// isChange reports whether s is the record that PropertyChange mirrors. One with more fields would lose them there.
func isChange(s *schema) bool {
	for _, f := range s.fields {
		if f.name != "current" && f.name != "previous" || !isText(f.typ) {
			return false
		}
	}
	return s.kind == kRecord
}

// Columns returns the event in the names that its record has, without the columns that are empty. It is for events of
// which no record can be made, too: those of dead letters, and those that people look at.
func (e *Event) Columns() map[string]any {
	doc := map[string]any{"topic": e.Topic, "subject": e.Subject}
	for _, f := range Fields {
		if value := e.column(f); value != nil && f.Column != "" {
			doc[f.Column] = value
		}
	}
	return doc
}

// column returns the value of a field; nil: it is empty.
func (e *Event) column(f *Field) any {
	switch f.Shape {
	case Text:
		if text := f.Text(e); text != "" {
			return text
		}
	case Number:
		if n, ok := f.Number(e); ok {
			return n
		}
	case Map:
		if list := f.Map(e); len(list) > 0 {
			return pairs(list)
		}
	case Properties:
		changes := map[string]any{}
		for _, c := range e.BlobPropertiesUpdated {
			changes[c.Name] = map[string]string{"current": c.Current, "previous": c.Previous}
		}
		if len(changes) > 0 {
			return changes
		}
	case Tags:
		sets := map[string]any{}
		for _, s := range e.BlobTagsUpdated {
			sets[s.Name] = pairs(s.Tags)
		}
		if len(sets) > 0 {
			return sets
		}
	}
	return nil
}

func pairs(list []Pair) map[string]string {
	m := map[string]string{}
	for _, p := range list {
		m[p.Name] = p.Value
	}
	return m
}
