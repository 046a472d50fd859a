package judge

import (
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"sync"

	"blobfeed/envelope"
	"blobfeed/source/inventory"
	"blobfeed/verify"
)

// newCensus returns the census of the topics, or why the topics can't be compared.
func (v *verification) newCensus(subjects []*subject, state *progressState) (*census, error) {
	c := &census{v: v, subjects: subjects, state: state, seed: maphash.MakeSeed(),
		differences: map[uint64]*difference{}, stray: map[string]int64{}}
	c.values = verify.Values{None: v.Record.Envelope == envelope.KeyOnly, Bare: v.Record.Envelope == envelope.Bare}
	if _, one := v.Topics.Constant(); one {
		c.only = subjects[0]
	}
	return c, c.comparable()
}

// comparable rejects settings and topics that do not make the table of an account.
func (c *census) comparable() error {
	v := c.v
	filter := v.Filter
	for _, not := range []struct {
		is  bool
		why string
	}{
		{v.Inventory == nil, "BRIDGE_SOURCE_URL names a directory, which has no blobs: name the storage account"},
		{v.Events == envelope.EventsAll, "with BRIDGE_EVENTS=all the last record of a key may not be its blob"},
		{len(filter.EventTypes)+len(filter.ExcludeEventTypes) > 0, "filters of event types leave out changes of blobs"},
		{v.Shared, "with BRIDGE_TOPIC_SHARED=true a key does not name its account"},
		{v.End != envelope.Timestamp{}, "with BRIDGE_END_TIME the topic is a table of that time"},
		{c.values.None && (v.Record.Deletes == envelope.DeletesEnvelope || v.Record.Deletes == envelope.DeletesEmpty),
			"with envelope=key_only a deletion looks like a row: BRIDGE_DELETES=tombstone or both is needed"},
		{c.state == nil, v.Name + ".offsets has no state, which says what is delivered"},
	} {
		if not.is {
			return unusable("--account: %s", not.why)
		}
	}
	f := c.state.Frontier
	switch {
	case f.Scan.Active() && f.Scan.Initial:
		return unusable("--account: the initial scan %s is not complete: wait for it", f.Scan.ID)
	case f.Start != "" && f.Epoch == 0:
		return unusable("--account: the bridge began at %s without a scan: blobs that were written before are not "+
			"in the topic",
			f.Start)
	}
	for _, s := range c.subjects {
		for p, from := range s.from {
			if from > 0 {
				return unusable("--account: partition %d of %s begins at offset %d: retention has deleted records, "+
					"so the topic can't have every key", p, s.name, from)
			}
		}
	}
	return nil
}

// take compares everything, adds to the reports of the topics what was found, and returns reports of missing topics.
func (c *census) take(ctx context.Context, reports []*Report) (more []*Report, err error) {
	if err := c.compare(ctx); err != nil {
		return nil, err
	}
	if err := c.settle(ctx); err != nil {
		return nil, err
	}
	for i, s := range c.subjects {
		c.report(reports[i], s)
	}
	return c.state.missing("account", accountPromise, "the account has", "blob", c.stray), nil
}

// compare finds the keys that differ when they are compared first.
func (c *census) compare(ctx context.Context) error {
	c.parts = 1
	for c.part = 0; c.part < c.parts; c.part++ {
		c.rows, c.lasts = map[uint64]uint64{}, map[lane]last{}
		for _, s := range c.subjects {
			if err := c.read(ctx, s); err != nil {
				return err
			}
		}
		if err := c.list(ctx); err != nil {
			return err
		}
		for h := range c.rows { // the topic has them, and the account does not
			c.differ(h)
		}
	}
	return nil
}

// read adds the last record of each key.
func (c *census) read(ctx context.Context, s *subject) error {
	var failed error
	err := s.read(ctx, s.from, s.to, func(r verify.Record) (more bool) {
		h := c.hash(s, r.Key)
		if r.Key == nil || h%c.parts != c.part {
			return true
		}
		row, err := r.Row(c.values)
		switch {
		case err != nil:
			failed = fmt.Errorf("partition %d of %s, offset %d: %w", r.Partition, s.name, r.Offset, err)
		case s.growth.grew():
			c.lasts[lane{h, r.Partition}] = last{c.sum(row.ETag, row.Length), row.Deleted, timeOf(&r)}
			c.halve()
		case row.Deleted:
			delete(c.rows, h)
		default:
			c.rows[h] = c.sum(row.ETag, row.Length)
			c.halve()
		}
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	c.merge(s)
	return err
}

// halve leaves half of the keys to another pass, if there are too many. Only the first pass does that: the parts are
// of about the same size.
func (c *census) halve() {
	for c.part == 0 && len(c.rows)+len(c.lasts) > c.v.limits.keys {
		c.parts *= 2
		maps.DeleteFunc(c.rows, func(h, _ uint64) bool { return h%c.parts != 0 })
		maps.DeleteFunc(c.lasts, func(l lane, _ last) bool { return l.key%c.parts != 0 })
	}
}

// list compares each blob of the account with its key's row, and leaves the rows that have no blob.
func (c *census) list(ctx context.Context) error {
	var one sync.Mutex
	var e censusKey
	o := inventory.Options{Mine: c.v.Filter.Selects, Requests: c.v.ScanRequests,
		Prefix: func(container string) string {
			prefix, _ := c.v.Filter.Prefix(container)
			return prefix
		}}
	return inventory.Walk(ctx, c.v.Inventory, inventory.Progress{}, o,
		func(_ context.Context, s *inventory.Step) error {
			one.Lock()
			defer one.Unlock()
			if c.began.IsZero() {
				c.began = s.Served
			}
			if s.Listed == nil {
				return nil
			}
			for i := range s.Listed.Blobs {
				if err := c.blob(&e, s.Container, &s.Listed.Blobs[i]); err != nil {
					return err
				}
			}
			return nil
		})
}

// blob compares a blob.
func (c *census) blob(e *censusKey, container string, b *inventory.Blob) error {
	s, key, err := c.key(e, container, b)
	if s == nil || err != nil {
		return err
	}
	h := c.hash(s, key)
	if h%c.parts != c.part {
		return nil
	}
	c.blobs++
	has, known := c.rows[h]
	if known && c.same(has, b) {
		delete(c.rows, h)
		return nil
	}
	delete(c.rows, h)
	if x := c.differ(h); x != nil {
		x.subject, x.key, x.path, x.listed = s, string(key), container+"/"+b.Name, true
	}
	return nil
}
