package verify

// byTopic is a state per topic. It remembers the last one: most readers read one topic.
type byTopic[T any] struct {
	name  string
	last  *T
	all   map[string]*T
	fresh func() *T // nil: new(T)
}

// mapsByTopic returns a byTopic whose states are maps.
func mapsByTopic[K comparable, V any]() byTopic[map[K]V] {
	return byTopic[map[K]V]{fresh: func() *map[K]V { return &map[K]V{} }}
}

func (b *byTopic[T]) at(topic string) *T {
	if b.last != nil && b.name == topic {
		return b.last
	}
	t := b.all[topic]
	if t == nil {
		if b.all == nil {
			b.all = map[string]*T{}
		}
		if t = new(T); b.fresh != nil {
			t = b.fresh()
		}
		b.all[topic] = t
	}
	b.name, b.last = topic, t
	return t
}

// byKey is a state per key. To change it in place costs no copy of the key.
type byKey[T any] map[string]*T

func (m *byKey[T]) at(key []byte) (state *T, known bool) {
	if s := (*m)[string(key)]; s != nil {
		return s, true
	}
	if *m == nil {
		*m = byKey[T]{}
	}
	s := new(T)
	(*m)[string(key)] = s
	return s, false
}
