package verify

// form is how an event came.
type form uint8

const (
	asValue form = 1 << iota
	asTombstone
)

func formOf(r *Record) form {
	if r.Value == nil {
		return asTombstone
	}
	return asValue
}

// follows reports whether r is the tombstone that may come after a value.
func (f form) follows(r *Record) bool { return f == asValue && formOf(r) == asTombstone }
