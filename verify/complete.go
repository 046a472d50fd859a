package verify

// Complete checks that exactly the expected events come, each at least once, by the header ce_id. Replay checks their
// bytes and their order, too. Complete keeps about 40 bytes per event.
type Complete struct {
	failures
	index  map[id]int32 // of states: to note an event is one lookup
	states []state
	left   int
}

type state uint8

const (
	seen  state = 1 << iota
	named       // the id is a UUID, so that a failure can name it
)

// NewComplete returns a Complete that expects nothing yet.
func NewComplete() *Complete { return &Complete{index: map[id]int32{}} }

// Expect adds an event. Call it before the event is shown: an unexpected event stays a failure.
func (c *Complete) Expect(eventID string) {
	text := []byte(eventID)
	x, s := idOf(text), state(0)
	if _, known := c.index[x]; known {
		return
	}
	if _, ok := parseUUID(text); ok {
		s = named
	}
	c.index[x] = int32(len(c.states))
	c.states = append(c.states, s)
	c.left++
}

// Left returns how many expected events have not come yet.
func (c *Complete) Left() int { return c.left }

// Note implements Validator.
func (c *Complete) Note(r Record) {
	if r.Key == nil || r.Scanned() {
		return
	}
	c.checked++
	text := r.Header("ce_id")
	i, expected := c.index[idOf(text)]
	switch {
	case !expected:
		c.add(&r, "event %q was not expected", text)
	case c.states[i]&seen == 0:
		c.states[i] |= seen
		c.left--
	}
}

// Failures implements Validator. It includes the missing events.
func (c *Complete) Failures() []Failure {
	f := c.copy()
	if c.left > 0 {
		// At the front: many unexpected events must not hide this line.
		f = &failures{}
		f.end("lacks %d of %d expected events%s", c.left, len(c.index), c.missing())
		f.first = append(f.first, c.first...)
		f.more = c.more
	}
	return f.Failures()
}

func (c *Complete) missing() string {
	text, n := "", 0
	for x, i := range c.index {
		if c.states[i] == named { // and not seen
			text += ", " + x.uuid()
			if n++; n == examples {
				break
			}
		}
	}
	if n > 0 {
		text = ", among them " + text[2:]
	}
	return text
}
