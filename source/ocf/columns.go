package ocf

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
