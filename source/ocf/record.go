package ocf

import "errors"

// Schema is the schema of records that are not events, such as those of a registry.
type Schema struct{ root *schema }

// Member is a field of a record: its value as JSON, and where its bytes are in the data.
type Member struct {
	Name     string
	JSON     []byte
	From, To int
}

var errNotRecord = errors.New("the value is not one record")

// ParseSchema reads a schema. Its depth and its number of types are bounded.
func ParseSchema(text string) (*Schema, error) {
	root, err := parseSchema(text)
	if err != nil {
		return nil, err
	}
	return &Schema{root}, nil
}

// Members reads data that is one value of the schema, which must be a record. What it allocates is bounded by the size
// of the data.
func (s *Schema) Members(data string) ([]Member, error) {
	if s.root.kind != kRecord {
		return nil, errNotRecord
	}
	r := newReader(data, defaults.Decompressed)
	members := make([]Member, len(s.root.fields))
	for i, f := range s.root.fields {
		from := r.at
		text, err := r.appendJSON(nil, f.typ, 1)
		if err != nil {
			return nil, err
		}
		members[i] = Member{f.name, text, from, r.at}
	}
	if r.at != len(data) {
		return nil, errNotRecord
	}
	return members, nil
}
