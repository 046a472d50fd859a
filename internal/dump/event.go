package dump

import "blobfeed/source/ocf"

// columns returns an event in the names that its record has, without the columns that are empty. An event of which no
// record can be made is shown, too, so this does not go through an encoder.
func columns(e *ocf.Event) map[string]any {
	doc := map[string]any{"topic": e.Topic, "subject": e.Subject}
	for _, f := range ocf.Fields {
		if value := column(e, f); value != nil && f.Column != "" {
			doc[f.Column] = value
		}
	}
	return doc
}

// column returns the value of a field; nil: it is empty.
func column(e *ocf.Event, f *ocf.Field) any {
	switch f.Shape {
	case ocf.Text:
		if text := f.Text(e); text != "" {
			return text
		}
	case ocf.Number:
		if n, ok := f.Number(e); ok {
			return n
		}
	case ocf.Map:
		if list := f.Map(e); len(list) > 0 {
			return pairs(list)
		}
	case ocf.Properties:
		changes := map[string]any{}
		for _, c := range e.BlobPropertiesUpdated {
			changes[c.Name] = map[string]string{"current": c.Current, "previous": c.Previous}
		}
		if len(changes) > 0 {
			return changes
		}
	case ocf.Tags:
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

func pairs(list []ocf.Pair) map[string]string {
	m := map[string]string{}
	for _, p := range list {
		m[p.Name] = p.Value
	}
	return m
}
