package offsets

import "encoding/json"

// Size returns how many bytes the larger of the two documents has that name topics: the frontier when it has taken over
// these pins, and a cursor that holds all of them. Each is one record, so the topic's max.message.bytes bounds it.
func (f *Frontier) Size(pins map[string]Pin) int {
	grown := *f
	grown.Adopt(pins)
	return max(length(&grown), length(&Cursor{Pins: pins}))
}

func length(doc any) int {
	b, err := json.Marshal(doc)
	if err != nil {
		return 0 // committing it says why
	}
	return len(b)
}
