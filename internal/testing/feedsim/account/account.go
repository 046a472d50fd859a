package account

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"blobfeed/source/inventory"
)

// Account is a storage account. It is safe for concurrent use.
type Account struct {
	now func() time.Time

	mu         sync.RWMutex
	containers map[string]*sorted
	ticks      int64 // of the latest change: each has its own
	recording  bool
	changes    []Change // that are not published
}

// Change is a write or a deletion of a blob.
type Change struct {
	Container string
	Blob      inventory.Blob // of a deletion, what was deleted; its ETag is that of the event
	Delete    bool
	Ticks     int64 // in units of 100 ns since 1970
}

// New returns an account without containers. Now is the service's clock; nil is the machine's.
func New(now func() time.Time) *Account {
	if now == nil {
		now = time.Now
	}
	return &Account{now: now, containers: map[string]*sorted{}}
}

// Record keeps every change from now on, for Publish.
func (a *Account) Record() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recording = true
}

// Create creates a container, if it is missing.
func (a *Account) Create(container string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.create(container)
}

func (a *Account) create(container string) *sorted {
	c := a.containers[container]
	if c == nil {
		c = &sorted{}
		a.containers[container] = c
	}
	return c
}

// Drop deletes a container with all its blobs, for which the feed has no events.
func (a *Account) Drop(container string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.containers, container)
}

// Put writes a blob, in a container that it creates if needed. Name and Length are taken from b, ContentType, BlobType
// and Tier, too, if they are set.
func (a *Account) Put(container string, b inventory.Blob) inventory.Blob {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := entry{name: b.Name, contentType: cmp.Or(b.ContentType, "application/octet-stream"),
		kind: cmp.Or(b.BlobType, "BlockBlob"), tier: b.Tier, length: b.Length, ticks: a.tick()}
	a.create(container).put(e)
	line := e.blob()
	a.record(Change{Container: container, Blob: line, Ticks: e.ticks})
	return line
}

// Delete deletes a blob and reports whether it existed.
func (a *Account) Delete(container, name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	e, ok := a.remove(container, name)
	if ok {
		e.ticks = a.tick()
		a.record(Change{Container: container, Blob: e.blob(), Delete: true, Ticks: e.ticks})
	}
	return ok
}

// Lose deletes a blob as Delete does, but the feed gets no event.
func (a *Account) Lose(container, name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.remove(container, name)
	return ok
}

func (a *Account) remove(container, name string) (e entry, ok bool) {
	if c := a.containers[container]; c != nil {
		e, ok = c.remove(name)
	}
	return e, ok
}

func (a *Account) record(c Change) {
	if a.recording {
		a.changes = append(a.changes, c)
	}
}

// tick returns the time of a change: no two changes have the same.
func (a *Account) tick() int64 {
	a.ticks = max(a.ticks+1, a.now().UnixNano()/100)
	return a.ticks
}

// Len returns how many blobs a container has.
func (a *Account) Len(container string) int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if c := a.containers[container]; c != nil {
		return c.count
	}
	return 0
}

// Blobs returns what every blob is now, by container/name.
func (a *Account) Blobs() map[string]inventory.Blob {
	a.mu.RLock()
	defer a.mu.RUnlock()
	all := map[string]inventory.Blob{}
	for container, c := range a.containers {
		c.from("", func(e *entry) bool {
			all[container+"/"+e.name] = e.blob()
			return true
		})
	}
	return all
}

func (e *entry) blob() inventory.Blob {
	return inventory.Blob{Name: e.name, ETag: string(appendETag(nil, e.ticks)), ContentType: e.contentType,
		BlobType: e.kind, Tier: e.tier, Length: e.length, Modified: time.Unix(e.ticks/ticksPerSecond, 0).UTC()}
}

const ticksPerSecond = int64(time.Second / 100)

// appendETag appends the entity tag that events and listings have of a change: its .NET ticks, in fifteen digits.
func appendETag(b []byte, ticks int64) []byte {
	const sinceYear1 = 621355968000000000
	const digits = "0123456789ABCDEF"
	b = append(b, "0x"...)
	for shift := 56; shift >= 0; shift -= 4 {
		b = append(b, digits[uint64(ticks+sinceYear1)>>shift&15])
	}
	return b
}

// page returns the entries of a query, at most size, and the name that the next page begins with, "" if there is none.
func (a *Account) page(q inventory.Query, from string, size int, f func(*entry)) (next string, err error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	c := a.containers[q.Container]
	if c == nil {
		return "", inventory.ErrNoContainer
	}
	if compare(from, q.Prefix) < 0 {
		from = q.Prefix
	}
	n := 0
	c.from(from, func(e *entry) bool {
		if !strings.HasPrefix(e.name, q.Prefix) {
			return false
		}
		if n == size {
			next = e.name
			return false
		}
		n++
		f(e)
		return true
	})
	return next, nil
}

// names returns the containers after a name, at most size, and whether that was all.
func (a *Account) names(after string, size int) (names []string, all bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	names = slices.Sorted(maps.Keys(a.containers))
	i, found := slices.BinarySearch(names, after)
	if found {
		i++
	}
	names = names[i:]
	if len(names) > size {
		return names[:size:size], false
	}
	return names, true
}

// Exists reports whether a container has a blob.
func (a *Account) Exists(container, name string) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	c := a.containers[container]
	if c == nil {
		return false
	}
	_, _, ok := c.find(name)
	return ok
}
