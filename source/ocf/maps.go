package ocf

// entries calls read for every entry of a map.
func (r *reader) entries(read func() error) error {
	for {
		n, err := r.count()
		if err != nil || n == 0 {
			return err
		}
		for ; n > 0; n-- {
			if err := read(); err != nil {
				return err
			}
		}
	}
}

// pairs reads a map of texts into to.
func (r *reader) pairs(s *schema, to *[]Pair) error {
	*to = (*to)[:0]
	return r.entries(func() (err error) {
		var p Pair
		if p.Name, err = r.string(); err != nil {
			return err
		}
		if s.items.kind == kString {
			p.Value, err = r.string()
		} else {
			p.Value, err = r.text(s.items)
		}
		if err != nil {
			return err
		}
		*to = append(*to, p)
		return r.spend(pairCost)
	})
}

// ignorePairs skips a map of strings.
func (r *reader) ignorePairs() error {
	for {
		n, err := r.count()
		if err != nil || n == 0 {
			return err
		}
		if n > int64(len(r.data)) {
			return errEnd
		}
		for n *= 2; n > 0; n-- {
			if size := r.short(); size >= 0 && size < len(r.data)-r.at {
				r.at += 1 + size
				continue
			}
			if _, err = r.string(); err != nil {
				return err
			}
		}
	}
}

// properties reads a map of records that are a PropertyChange.
func (r *reader) properties(s *schema, to *[]PropertyChange) error {
	*to = (*to)[:0]
	return r.entries(func() (err error) {
		var c PropertyChange
		if c.Name, err = r.string(); err != nil {
			return err
		}
		for _, f := range s.items.fields {
			at := &c.Previous
			if f.name == "current" {
				at = &c.Current
			}
			if *at, err = r.text(f.typ); err != nil {
				return err
			}
		}
		*to = append(*to, c)
		return r.spend(changeCost)
	})
}

// tags reads a map of maps of texts.
func (r *reader) tags(s *schema, to *[]TagSet) error {
	sets := (*to)[:0]
	err := r.entries(func() (err error) {
		if err = r.spend(setCost); err != nil {
			return err
		}
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
		return r.pairs(s.items, &t.Tags)
	})
	*to = sets
	return err
}
