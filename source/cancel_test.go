package source_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"blobfeed/source"
)

// blocking is a store that never answers. It says when it was asked.
type blocking struct{ asked chan struct{} }

func (b *blocking) wait(ctx context.Context) error {
	b.asked <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func (b *blocking) List(ctx context.Context, _, _ string) iter.Seq2[source.Entry, error] {
	return func(yield func(source.Entry, error) bool) { yield(source.Entry{}, b.wait(ctx)) }
}

func (b *blocking) ReadAt(ctx context.Context, _ string, _ []byte, _ int64) (int, error) {
	return 0, b.wait(ctx)
}

// switched is a store that can be replaced.
type switched struct{ source.Store }

// Every call ends when its context does, as an error that says so; then it can be made again.
func TestEveryCallEndsWithItsContext(t *testing.T) {
	m := indexed("2026-01-01T00:00:00Z", "2026/01/01/0000")
	m.blobs["idx/segments/2026/01/01/0000/meta.json"] = []byte(
		`{"begin":"2026-01-01T00:00:00Z","status":"Publishing","chunkFilePaths":["` + shardPath + `"]}`,
	)
	m.blobs[shardPath+"00000.avro"] = slices.Concat(header(), block("a"), block("b"))
	stuck := &blocking{make(chan struct{})}
	store := &switched{m}
	feed := source.New(store, source.Options{ReadSize: int64(len(header()) + len(block("a")))})
	r := feed.Shard(manifest(false), 0, source.ShardPosition{})
	var b source.Batch
	segment := func(ctx context.Context) error {
		for _, err := range feed.Segments(ctx, source.Segment{}) {
			return err
		}
		return errors.New("no segment")
	}
	for _, c := range []struct {
		name string
		call func(context.Context) error
	}{
		{"LastConsumable", func(ctx context.Context) error { _, err := feed.LastConsumable(ctx); return err }},
		{"Manifest", func(ctx context.Context) error {
			_, err := feed.Manifest(ctx, manifest(false).Segment)
			return err
		}},
		{"Segments", segment},
		{"Poll", func(ctx context.Context) error { return r.Poll(ctx, false) }},
		{"Next, header", func(ctx context.Context) error { return r.Next(ctx, &b) }},
		{"Next, block", func(ctx context.Context) error { return r.Next(ctx, &b) }},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		store.Store = stuck
		done := make(chan error)
		go func() { done <- c.call(ctx) }()
		<-stuck.asked
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", c.name, err)
		}
		store.Store = m
		if err := c.call(t.Context()); err != nil {
			t.Errorf("%s, again: %v", c.name, err)
		}
	}
	if got := b.Events[0].ID; got != "b" {
		t.Errorf("the last event is %s", got)
	}
	// In the middle of a listing, whose store does not look at the context itself.
	long := indexed("2020-12-31T00:00:00Z", "2020/01/01/0000", "2020/02/01/0000", "2020/03/01/0000")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := 0
	var last error
	for _, err := range source.New(long, source.Options{}).Segments(ctx, source.Segment{}) {
		seen++
		last = err
		cancel()
	}
	if seen != 2 || !errors.Is(last, context.Canceled) {
		t.Errorf("%d segments and %v", seen, last)
	}
}

// The feed alone says what may be read: nothing here looks at a clock, or knows where it is.
func TestNothingLooksAtAClock(t *testing.T) {
	var files []string
	// azure's paces the renewal of credentials, and no more
	for _, pattern := range []string{"*.go", "ocf/*.go", "dir/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	checked := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		checked++
		for _, imported := range tree.Imports {
			if imported.Path.Value == `"time"` && imported.Name != nil {
				t.Errorf("%s imports time by another name, which this test does not see through", file)
			}
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := s.X.(*ast.Ident)
			if ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Local", "Sleep", "After",
				"AfterFunc", "Tick", "NewTimer", "NewTicker"}, s.Sel.Name) {
				t.Errorf("%s uses time.%s", file, s.Sel.Name)
			}
			if s.Sel.Name == "Local" && (!ok || x.Name != "time") {
				t.Errorf("%s turns a time to the local zone", file)
			}
			return true
		})
	}
	if checked < 12 {
		t.Errorf("only %d files were looked at", checked)
	}
}
