package inventory

import (
	"fmt"
	"slices"
	"time"
)

// Progress is how far a listing of an account is. The zero value is the start. It is stored as JSON.
type Progress struct {
	// Next is the last container that was opened. Containers are opened in ascending order.
	Next string `json:"next,omitempty"`
	// Page is the marker of the page of containers that Next is on, or of a later one: a hint. All containers before it
	// are opened. Else a walk that is interrupted again and again would not get beyond the first pages.
	Page      string  `json:"page,omitempty"`
	Exhausted bool    `json:"exhausted,omitempty"` // no container follows Next
	Open      []Range `json:"open,omitempty"`      // what is left of opened containers

	Served     time.Time `json:"served,omitzero"` // the latest answer that was applied, by the service's clock
	Rows       int64     `json:"rows,omitempty"`
	Pages      int64     `json:"pages,omitempty"`
	Containers int64     `json:"containers,omitempty"`
}

// Range is the part of a container that is still to be listed.
type Range struct {
	ID        int    `json:"id"` // unique among the open ranges
	Container string `json:"container"`
	From      string `json:"from,omitempty"`  // the first name, inclusive and ASCII; "" from the start
	After     string `json:"after,omitempty"` // the last name that was listed, which replaces From
	End       string `json:"end,omitempty"`   // the first name that is not in the range, ASCII; "" to the end
	Hint      *Hint  `json:"hint,omitempty"`  // where to resume behind pages without names; nil: by name
	Rows      int64  `json:"rows,omitempty"`  // of the container in this range, and in ranges of it that are done
}

// Hint is where the service continues a listing. From and Prefix are those of the listing.
type Hint struct {
	Marker string `json:"marker"`
	From   string `json:"from,omitempty"`
	Prefix string `json:"prefix,omitempty"`
}

// Step is one change of a Progress. Exactly one of Open, Split, Listed, Page and Exhausted is set.
type Step struct {
	Range     int     // the range's ID, for Split and Listed
	Container string  // its container
	Open      *Range  // a container was opened: this is all of it
	Split     *Range  // this new range takes what the range has from Split.From on
	Listed    *Listed // a page of the range
	Page      string  // all containers before the page of this marker are opened
	Exhausted bool    // no container is left to open
	Served    time.Time
}

// Listed is a page of a range.
type Listed struct {
	Blobs []Blob
	Last  bool  // the range is done
	More  bool  // another step has more blobs of the same page
	Hint  *Hint // where the service continues; nil if there are blobs
}

// Done reports whether nothing is left to list.
func (p *Progress) Done() bool { return p.Exhausted && len(p.Open) == 0 }

// Clone returns a copy that shares no memory.
func (p *Progress) Clone() Progress {
	c := *p
	c.Open = slices.Clone(p.Open)
	return c
}

// Apply moves the progress over a step. It fails on a step that does not fit, which means that steps were lost or
// applied out of order.
func (p *Progress) Apply(s *Step) error {
	i := slices.IndexFunc(p.Open, func(r Range) bool { return r.ID == s.Range })
	switch {
	case s.Open != nil:
		p.Next = s.Open.Container
		p.Open = append(p.Open, *s.Open)
		p.Containers++
	case s.Page != "":
		p.Page = s.Page
	case s.Exhausted:
		p.Exhausted = true
	case i < 0:
		return fmt.Errorf("applying a step to range %d of container %s: the range is not open", s.Range, s.Container)
	case s.Split != nil:
		p.Open[i].End = s.Split.From
		p.Open = append(p.Open, *s.Split)
	case s.Listed != nil:
		if n := len(s.Listed.Blobs); n > 0 {
			// A copy: the name must not keep its page in memory.
			p.Open[i].From, p.Open[i].After = "", string([]byte(s.Listed.Blobs[n-1].Name))
		}
		rows := int64(len(s.Listed.Blobs))
		p.Rows += rows
		p.Open[i].Rows += rows
		p.Open[i].Hint = s.Listed.Hint
		if s.Listed.Last {
			rows = p.Open[i].Rows
			p.Open = slices.Delete(p.Open, i, i+1)
			same := func(r Range) bool { return r.Container == s.Container }
			if of := slices.IndexFunc(p.Open, same); of >= 0 {
				p.Open[of].Rows += rows
			}
		}
		if !s.Listed.More {
			p.Pages++
		}
	}
	if s.Served.After(p.Served) {
		p.Served = s.Served
	}
	return nil
}
