package ocf

// skip skips a value without allocating.
func (r *reader) skip(s *schema, depth int) error {
	if depth > maxDepth {
		return errDeep
	}
	if err := r.spend(1); err != nil {
		return err
	}
	var err error
	switch s.kind {
	case kBoolean:
		_, err = r.take(1)
	case kInt:
		_, err = r.long()
	case kFloat:
		_, err = r.take(4)
	case kDouble:
		_, err = r.take(8)
	case kString:
		_, err = r.string()
	case kFixed:
		_, err = r.take(s.size)
	case kEnum:
		_, err = r.symbol(s)
	case kUnion:
		var b *schema
		if b, err = r.choose(s); err == nil {
			err = r.skip(b, depth+1)
		}
	case kRecord:
		for _, f := range s.fields {
			if err = r.skip(f.typ, depth+1); err != nil {
				return err
			}
		}
	case kArray, kMap:
		return r.skipEntries(s, depth)
	}
	return err
}

func (r *reader) skipEntries(s *schema, depth int) error {
	return r.entries(func() error {
		if s.kind == kMap {
			if _, err := r.string(); err != nil {
				return err
			}
		}
		return r.skip(s.items, depth+1)
	})
}
