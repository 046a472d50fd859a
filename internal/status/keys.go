package status

import "blobfeed/offsets"

// KeySchema returns the id of the schema that the Avro keys of a topic are written with, or 0 if there are none.
func KeySchema(s *offsets.State, topic string) (id int) {
	for _, c := range s.Cursors { // they know a topic before the frontier does
		if c != nil && c.Pins[topic].KeySchema != 0 {
			id = c.Pins[topic].KeySchema
		}
	}
	if f := s.Frontier; f != nil && f.KeySchemas[topic] != 0 {
		id = f.KeySchemas[topic]
	}
	return id
}
