package bridge

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/source"
)

// memory is a feed in memory, for feedsim to write and the engine to read. Hooks are called before a call is
// answered, and may change the feed; an error of theirs is the answer.
type memory struct {
	mu     sync.Mutex
	blobs  map[string][]byte
	grew   map[string]time.Time // nil: it does not say when
	reads  []string             // names
	onRead func(name string) error
	onList func(prefix string) error
}

func newMemory() *memory { return &memory{blobs: map[string][]byte{}} }

func (m *memory) Put(_ context.Context, name string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blobs[name] = slices.Clone(data)
	return nil
}

func (m *memory) Append(_ context.Context, name string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blobs[name] = slices.Concat(m.blobs[name], data)
	if m.grew != nil {
		m.grew[name] = time.Now().Truncate(time.Second)
	}
	return nil
}

func (m *memory) replace(name, old, by string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blobs[name] = []byte(strings.ReplaceAll(string(m.blobs[name]), old, by))
}

// remove deletes what begins with prefix, as retention does.
func (m *memory) remove(prefix string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.blobs {
		if strings.HasPrefix(name, prefix) {
			delete(m.blobs, name)
		}
	}
}

func (m *memory) List(ctx context.Context, prefix, delimiter string) iter.Seq2[source.Entry, error] {
	return func(yield func(source.Entry, error) bool) {
		if m.onList != nil {
			if err := m.onList(prefix); err != nil {
				yield(source.Entry{}, err)
				return
			}
		}
		m.mu.Lock()
		var entries []source.Entry
		for name, b := range m.blobs {
			if rest, ok := strings.CutPrefix(name, prefix); ok {
				e := source.Entry{Name: name, Size: int64(len(b)), Modified: m.grew[name]}
				if i := strings.Index(rest, "/"); delimiter != "" && i >= 0 {
					e = source.Entry{Name: prefix + rest[:i+1], IsPrefix: true}
				}
				if !slices.Contains(entries, e) {
					entries = append(entries, e)
				}
			}
		}
		m.mu.Unlock()
		slices.SortFunc(entries, func(a, b source.Entry) int { return strings.Compare(a.Name, b.Name) })
		for _, e := range entries {
			if !yield(e, ctx.Err()) {
				return
			}
		}
	}
}

func (m *memory) ReadAt(ctx context.Context, name string, p []byte, offset int64) (int, error) {
	if m.onRead != nil {
		if err := m.onRead(name); err != nil {
			return 0, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads = append(m.reads, name)
	b, ok := m.blobs[name]
	if !ok {
		return 0, source.ErrNotFound
	}
	return copy(p, b[min(offset, int64(len(b))):]), ctx.Err()
}

// over returns options for a feed in memory, polled fast.
func over(t *testing.T, c *kfake.Cluster, m *memory) (Options, *recorder) {
	t.Helper()
	o, r := options(t, c, realFeed)
	o.Feed.Source, o.Pace.PollInterval = source.New(m, source.Options{}), 20*time.Millisecond
	return o, r
}

// simulated returns a feed to be written step by step into memory.
func simulated(t *testing.T, spec feedsim.Spec) (*memory, *feedsim.Feed) {
	t.Helper()
	m := newMemory()
	live, err := feedsim.New(m, spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := live.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m, live
}

// happened is an event as a test says it, of a made feed: "id time subject". A blob that names its container does so as
// "container/blobs/name"; others are in container c.
type happened struct{ id, at, blob string }

// avro returns a chunk of a schema with only what the envelope needs.
func avro(header bool, events ...happened) []byte {
	const sync = "0123456789abcdef"
	text := func(s string) string { return string([]byte{byte(len(s)<<1&0x7f | 0x80), byte(len(s) >> 6)}) + s }
	schema := `{"type":"record","name":"E","fields":[{"name":"id","type":"string"},` +
		`{"name":"subject","type":"string"},{"name":"eventType","type":"string"},{"name":"eventTime","type":"string"}]}`
	b := ""
	if header {
		b = "Obj\x01\x02\x16avro.schema" + text(schema) + "\x00" + sync
	}
	for block := range slices.Chunk(events, 60) { // what two bytes can count
		data := ""
		for _, e := range block {
			path := e.blob
			if !strings.Contains(path, "/blobs/") {
				path = "c/blobs/" + path
			}
			data += text(e.id) + text("/blobServices/default/containers/"+path) + text("BlobCreated") + text(e.at)
		}
		b += string([]byte{byte(len(block) << 1)}) + text(data) + sync
	}
	return []byte(b)
}

// segment writes a whole one, of shards that each have one chunk, and says that it may be read.
func (m *memory) segment(name, status string, minutes int, shards map[int][]happened) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, err := time.Parse("2006/01/02/1504", name)
	if err != nil {
		panic(err)
	}
	begin := at.Format("2006-01-02T15:04:05.000Z")
	var paths []string
	for shard, events := range shards {
		path := fmt.Sprintf("log/%02d/%s/", shard, name)
		paths = append(paths, `"$blobchangefeed/`+path+`"`)
		if _, ok := m.blobs[path+"00000.avro"]; !ok {
			m.blobs[path+"00000.avro"] = avro(true, events...)
		}
	}
	m.blobs["idx/segments/"+name+"/meta.json"] = fmt.Appendf(
		nil,
		`{"begin":%q,"intervalSecs":%d,"status":%q,"chunkFilePaths":[%s]}`,
		begin,
		minutes*60,
		status,
		strings.Join(paths, ","),
	)
	m.blobs["meta/segments.json"] = fmt.Appendf(nil, `{"lastConsumable":%q}`, begin)
}
