package ocf

import "errors"

// target is where a field of the feed goes. Exactly one of its functions is set.
type target struct {
	text  func(*Event) *string
	long  func(*Event, int64)
	pairs func(*Event) *[]Pair
	props bool
	tags  bool
}

var targets = map[string]target{
	"schemaVersion": {long: func(e *Event, v int64) { e.SchemaVersion = v }},
	"topic":         {text: func(e *Event) *string { return &e.Topic }},
	"subject":       {text: func(e *Event) *string { return &e.Subject }},
	"eventType":     {text: func(e *Event) *string { return &e.EventType }},
	"eventTime":     {text: func(e *Event) *string { return &e.EventTime }},
	"id":            {text: func(e *Event) *string { return &e.ID }},

	"api":              {text: func(e *Event) *string { return &e.API }},
	"clientRequestId":  {text: func(e *Event) *string { return &e.ClientRequestID }},
	"requestId":        {text: func(e *Event) *string { return &e.RequestID }},
	"etag":             {text: func(e *Event) *string { return &e.ETag }},
	"contentType":      {text: func(e *Event) *string { return &e.ContentType }},
	"contentLength":    {long: func(e *Event, v int64) { e.ContentLength, e.HasContentLength = v, true }},
	"blobType":         {text: func(e *Event) *string { return &e.BlobType }},
	"blobVersion":      {text: func(e *Event) *string { return &e.BlobVersion }},
	"containerVersion": {text: func(e *Event) *string { return &e.ContainerVersion }},
	"blobTier":         {text: func(e *Event) *string { return &e.BlobTier }},
	"url":              {text: func(e *Event) *string { return &e.URL }},
	"sequencer":        {text: func(e *Event) *string { return &e.Sequencer }},
	"snapshot":         {text: func(e *Event) *string { return &e.Snapshot }},

	"previousInfo":          {pairs: func(e *Event) *[]Pair { return &e.PreviousInfo }},
	"asyncOperationInfo":    {pairs: func(e *Event) *[]Pair { return &e.AsyncOperationInfo }},
	"restorePointMarker":    {pairs: func(e *Event) *[]Pair { return &e.RestorePointMarker }},
	"blobPropertiesUpdated": {props: true},
	"blobTagsUpdated":       {tags: true},
}

var (
	errUnion = errors.New("the union has no such branch")
	errEnum  = errors.New("the enum has no such symbol")
)

// reader returns how to read a field of type s into the target, or nil if s does not fit: then the field goes to Extra.
// A union fits if each branch does, or is null.
func (t target) reader(s *schema) func(*reader, *schema, *Event) error {
	if s.kind == kUnion {
		branches := make([]func(*reader, *schema, *Event) error, len(s.union))
		for i, b := range s.union {
			if b.kind == kNull {
				continue
			}
			if branches[i] = t.reader(b); b.kind == kUnion || branches[i] == nil {
				return nil
			}
		}
		return func(r *reader, s *schema, ev *Event) error {
			i, err := r.long()
			if err != nil {
				return err
			}
			if i < 0 || i >= int64(len(branches)) {
				return errUnion
			}
			if branches[i] == nil {
				return nil
			}
			return branches[i](r, s.union[i], ev)
		}
	}
	switch {
	case t.text != nil && s.kind == kString:
		return func(r *reader, _ *schema, ev *Event) (err error) {
			*t.text(ev), err = r.string()
			return err
		}
	case t.text != nil && s.kind == kEnum:
		return func(r *reader, s *schema, ev *Event) (err error) {
			*t.text(ev), err = r.symbol(s)
			return err
		}
	case t.long != nil && s.kind == kInt:
		return func(r *reader, _ *schema, ev *Event) error {
			v, err := r.long()
			t.long(ev, v)
			return err
		}
	case t.pairs != nil && isStringMap(s):
		return func(r *reader, _ *schema, ev *Event) (err error) {
			*t.pairs(ev), err = r.pairs((*t.pairs(ev))[:0])
			return err
		}
	case t.props && s.kind == kMap && s.items.kind == kRecord && allStrings(s.items):
		return readProperties
	case t.tags && s.kind == kMap && isStringMap(s.items):
		return readTags
	}
	return nil
}

func isStringMap(s *schema) bool { return s.kind == kMap && s.items.kind == kString }

func allStrings(s *schema) bool {
	for _, f := range s.fields {
		if f.typ.kind != kString {
			return false
		}
	}
	return true
}

func (r *reader) symbol(s *schema) (string, error) {
	i, err := r.long()
	if err != nil {
		return "", err
	}
	if i < 0 || i >= int64(len(s.symbols)) {
		return "", errEnum
	}
	return s.symbols[i], nil
}

// entries calls each for every entry of a map or array. Entries take a byte at least unless zero says otherwise, so a
// count above what is left is a lie.
func (r *reader) entries(zero bool, each func() error) error {
	for {
		count, err := r.long()
		if err != nil || count == 0 {
			return err
		}
		if count < 0 {
			if _, err := r.long(); err != nil { // size in bytes, of no use here
				return err
			}
			count = -count
		}
		if count < 0 || zero || count > int64(len(r.s)) {
			return errEnd
		}
		for range count {
			if err := each(); err != nil {
				return err
			}
		}
	}
}

func (r *reader) pairs(to []Pair) ([]Pair, error) {
	err := r.entries(false, func() (err error) {
		var p Pair
		if p.Name, err = r.string(); err != nil {
			return err
		}
		if p.Value, err = r.string(); err != nil {
			return err
		}
		to = append(to, p)
		return nil
	})
	return to, err
}

func readProperties(r *reader, s *schema, ev *Event) error {
	return r.entries(false, func() (err error) {
		var c PropertyChange
		if c.Name, err = r.string(); err != nil {
			return err
		}
		for _, f := range s.items.fields {
			text, err := r.string()
			if err != nil {
				return err
			}
			switch f.name {
			case "current":
				c.Current = text
			case "previous":
				c.Previous = text
			}
		}
		ev.BlobPropertiesUpdated = append(ev.BlobPropertiesUpdated, c)
		return nil
	})
}

func readTags(r *reader, _ *schema, ev *Event) error {
	sets := ev.BlobTagsUpdated
	err := r.entries(false, func() (err error) {
		// A set that was here before keeps the capacity of its tags.
		if len(sets) < cap(sets) {
			sets = sets[:len(sets)+1]
		} else {
			sets = append(sets, TagSet{})
		}
		t := &sets[len(sets)-1]
		if t.Name, err = r.string(); err != nil {
			return err
		}
		t.Tags, err = r.pairs(t.Tags[:0])
		return err
	})
	ev.BlobTagsUpdated = sets
	return err
}
