package judge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"blobfeed/envelope"
	"blobfeed/internal/pause"
	"blobfeed/internal/status"
	"blobfeed/source"
	"blobfeed/source/inventory"
	"blobfeed/verify"
)

// maxLookPages is how many pages, all but the last of them empty, the look-up of a blob may take.
const maxLookPages = 1000

// lookRequests is how many keys are looked up in the account at a time.
const lookRequests = 16

// differ adds a key by its hash. It returns nil if there are too many.
func (c *census) differ(h uint64) *difference {
	if len(c.differences) >= c.v.limits.differences {
		c.lost++
		return nil
	}
	x := &difference{row: verify.Row{Deleted: true}}
	c.differences[h] = x
	return x
}

// settle looks again at the keys that differ until they agree or the feed explains them, or the patience is over. A
// change takes minutes to get into the feed.
func (c *census) settle(ctx context.Context) error {
	at := map[*judgedTopic]map[int32]int64{}
	for _, s := range c.judged {
		at[s] = s.from
	}
	for until := time.Now().Add(c.v.Wait); len(c.differences) > 0; {
		for _, s := range c.judged {
			end, err := c.reread(ctx, s, at[s])
			if err != nil {
				return err
			}
			at[s] = end
		}
		if err := c.look(ctx); err != nil {
			return err
		}
		if err := c.explain(ctx); err != nil {
			return err
		}
		waits := func(x *difference) bool { return !x.pending }
		if time.Now().After(until) || !slices.ContainsFunc(slices.Collect(maps.Values(c.differences)), waits) {
			return nil
		}
		if err := pause.For(ctx, c.v.limits.poll); err != nil {
			return err
		}
	}
	return nil
}

// reread takes the last records of the keys, from some offsets to the end that the topic has now.
func (c *census) reread(ctx context.Context, s *judgedTopic, from map[int32]int64) (end map[int32]int64, err error) {
	t, err := c.v.open(ctx, s.name)
	if err != nil {
		return nil, err
	}
	differs := func(h uint64) bool { return c.differences[h] != nil }
	return t.to, c.each(ctx, t, from, differs, func(h uint64, r *verify.Record, row verify.Row) {
		x := c.differences[h]
		x.take(r, row)
		x.topic, x.key, x.path = s, string(r.Key), cmp.Or(x.path, r.Path())
	})
}

// look asks the account for each of the keys, and drops those that agree, or that the settings do not select.
func (c *census) look(ctx context.Context) error {
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(lookRequests)
	for _, x := range c.differences {
		group.Go(func() (err error) {
			x.blob, err = c.blobOf(gctx, x.path)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	maps.DeleteFunc(c.differences, func(_ uint64, x *difference) bool {
		switch {
		case !c.selects(x.path, x.row.Type):
			return true
		case x.row.Deleted || x.blob == nil:
			return x.row.Deleted && x.blob == nil
		}
		return c.same(c.sum(x.row.ETag, x.row.Length), x.blob)
	})
	return nil
}

// blobOf returns the blob of a path, or nil.
func (c *census) blobOf(ctx context.Context, path string) (*inventory.Blob, error) {
	container, name, _ := strings.Cut(path, "/")
	q := inventory.Query{Container: container, Prefix: name, Max: 1}
	for range maxLookPages {
		page, err := c.v.Feed.Inventory.List(ctx, q)
		switch {
		case errors.Is(err, inventory.ErrNoContainer):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("looking for %s: %w", path, err)
		case len(page.Blobs) > 0 && page.Blobs[0].Name == name: // it sorts before what it begins
			return &page.Blobs[0], nil
		case len(page.Blobs) > 0 || page.Marker == "":
			return nil, nil
		case page.Marker == q.Marker:
			return nil, fmt.Errorf("looking for %s: the next page of the listing is the same one: check the endpoint, "+
				"and proxies on the way to it", path)
		}
		q.Marker = page.Marker
	}
	return nil, fmt.Errorf("looking for %s: the listing does not end after %d empty pages: check the endpoint, and "+
		"proxies on the way to it", path, maxLookPages)
}

// explain finds the keys of which the feed has an event that is not delivered. The state is read behind the topics, so
// what it does not cover was not in them.
func (c *census) explain(ctx context.Context) error {
	state, err := c.v.cluster.state(ctx, c.v.state.topic)
	if err != nil || state == nil || state.Frontier == nil {
		return err
	}
	byPath := map[string][]*difference{}
	for _, x := range c.differences {
		x.pending = false
		byPath[x.path] = append(byPath[x.path], x)
	}
	if len(byPath) == 0 {
		return nil
	}
	skip := func(*source.DamageError, source.Loss) error { return nil } // the other checks report damage
	for o, err := range readAhead(ctx, c.v.Feed.Source, state.Frontier.Completed) {
		if err != nil {
			return err
		}
		for i, r := range o.shards {
			if err := blocks(ctx, r, skip, func(b *source.Batch) error {
				covered := status.Covers(state, o.manifest.Segment, o.manifest.Shards[i], b.Next)
				for i := range b.Events {
					for _, x := range byPath[envelope.PathOf(b.Events[i].Subject)] {
						x.pending = x.pending || !covered
					}
				}
				return nil
			}); err != nil {
				return err
			}
		}
	}
	return nil
}
