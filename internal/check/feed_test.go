package check

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"blobfeed/bridge"
	"blobfeed/internal/status"
	"blobfeed/source"
	"blobfeed/source/azure"
	"blobfeed/source/dir"
)

const recorded = "../../testdata/real-2020"

// copied returns a copy of some directories of a recorded feed.
func copied(t *testing.T, parts ...string) string {
	t.Helper()
	to := t.TempDir()
	for _, part := range parts {
		if err := os.CopyFS(filepath.Join(to, part), os.DirFS(filepath.Join(recorded, part))); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// container is a directory that is taken for the service's container, which exists even if it is empty.
type container struct{ source.Store }

func (c container) ReadAt(ctx context.Context, name string, p []byte, offset int64) (int, error) {
	n, err := c.Store.ReadAt(ctx, name, p, offset)
	if err != nil {
		err = source.ErrNotFound
	}
	return n, err
}

// The states of a feed are kept apart: none, empty, copied in part, and whole.
func TestStatesOfAFeed(t *testing.T) {
	for _, tc := range []struct {
		name    string
		parts   []string
		service bool
		check   string
		status  Status
		detail  string
	}{
		{"an empty directory", nil, false, "reach", Failed, "there is no change feed"},
		{"without meta", []string{"idx", "log"}, false, "reach", Failed, "meta/segments.json is missing"},
		{"without meta and idx", []string{"log"}, false, "reach", Failed,
			"meta/segments.json is missing"},
		{"without idx", []string{"meta", "log"}, false, "list", Failed, "idx/segments/ has no segment"},
		{"without log", []string{"meta", "idx"}, false, "read", Failed,
			"segment 2020/01/16/2100 is finalized, and none of the 1 shards"},
		{"whole", []string{"meta", "idx", "log"}, false, "newest", OK, "segment 2020/05/29/2100"},
		{"a new account", nil, true, "feed", Warning, "the change feed is enabled and has published nothing yet"},
		{"the service before it writes meta", []string{"idx"}, true, "feed", Warning,
			"there is the segment 2020/01/16/2100"},
		{"the service before its first segment", []string{"meta"}, true, "feed", Warning, "there is no segment yet"},
	} {
		var store source.Store
		files, err := dir.New(copied(t, tc.parts...))
		if err != nil {
			t.Fatal(err)
		}
		b := &Bridge{}
		if store = files; tc.service {
			store, b.Azure = container{files}, &azure.Config{}
		}
		b.Options = &bridge.Options{Feed: bridge.Feed{Source: source.New(store, source.Options{Copy: !tc.service}), ID: "feed"}}
		var found Findings
		found.feed(t.Context(), b, time.Now())
		last := found[len(found)-1]
		if last.Check != tc.check || last.Status != tc.status || !strings.Contains(last.Detail, tc.detail) ||
			(last.Do == "") != (last.Status == OK) {
			t.Errorf("%s: %+v", tc.name, found)
		}
	}
}

// A copy that was interrupted lacks manifests or has empty chunks, and run would leave out their events unseen.
func TestInterruptedCopy(t *testing.T) {
	const seg, last, root = "2020/05/29/1600", "2020/05/29/2100", `"$blobchangefeed/log/`
	unindex := func(dir string) error { return os.RemoveAll(filepath.Join(dir, "idx/segments", last)) }
	empty := func(dir string) error { return os.Truncate(filepath.Join(dir, "log/00", last, "00000.avro"), 0) }
	edit := func(at, old, to string) func(dir string) error {
		return func(dir string) error {
			name := filepath.Join(dir, "idx/segments", at, "meta.json")
			text, err := os.ReadFile(name)
			return errors.Join(err, os.WriteFile(name, bytes.Replace(text, []byte(old), []byte(to), 1), 0o600))
		}
	}
	for name, tc := range map[string]struct {
		spoil  func(dir string) error
		status Status
		detail string
	}{
		"open": {edit(seg, "Finalized", "Publishing"), Warning,
			"1 segment still open although there are later ones, such as " + seg},
		"shard without a chunk": {edit(seg, root+"00/", root+"01/"+seg+`/", `+root+"00/"), Warning,
			"1 shard named in a manifest without a chunk in log/, such as log/01/" + seg},
		"whole":    {func(string) error { return nil }, OK, "agree"},
		"manifest": {func(dir string) error { return os.RemoveAll(filepath.Join(dir, "idx/segments", seg)) }, Warning, seg},
		"chunk": {func(dir string) error { return os.Truncate(filepath.Join(dir, "log/00", seg, "00000.avro"), 0) },
			Warning, seg},
		"chunks": {func(dir string) error { return os.RemoveAll(filepath.Join(dir, "log/00", seg)) }, Warning,
			"1 segment without a chunk in log/, such as " + seg},
		"newest": {func(dir string) error { return os.RemoveAll(filepath.Join(dir, "log/00/2020/05/29/2100")) }, Warning,
			"1 segment without a chunk in log/, such as 2020/05/29/2100"},
		"document": {func(dir string) error { return os.Remove(filepath.Join(dir, "idx/segments", seg, "meta.json")) },
			Warning, "1 segment without a manifest in idx/, such as " + seg},
		"first chunk": {func(dir string) error {
			shard := filepath.Join(dir, "log/00", seg)
			return os.Rename(filepath.Join(shard, "00000.avro"), filepath.Join(shard, "00001.avro"))
		}, Warning, "1 shard with a missing chunk, such as log/00/" + seg},
		"newest document": {func(dir string) error {
			return os.Remove(filepath.Join(dir, "idx/segments/2020/05/29/2100/meta.json"))
		}, Warning, "1 segment without a manifest in idx/, such as 2020/05/29/2100"},
		"shard": {func(dir string) error {
			return os.CopyFS(filepath.Join(dir, "log/01", seg), os.DirFS(filepath.Join(dir, "log/00", seg)))
		}, Warning, "1 shard in no manifest of idx/, such as that of log/01/" + seg},
		"newest unindexed": {unindex, Warning, "1 shard in no manifest of idx/, such as that of log/00/" + last},
		"newer than what is published": {func(dir string) error {
			published := []byte(`{"lastConsumable": "2020-05-29T20:00:00Z"}`)
			return errors.Join(unindex(dir), os.WriteFile(filepath.Join(dir, "meta/segments.json"), published, 0o600))
		}, OK, "agree"},
		"newest chunk": {empty, Warning, "1 chunk without a byte, such as log/00/" + last},
		"newest chunk, open": {func(dir string) error {
			return errors.Join(edit(last, "Finalized", "Publishing")(dir), empty(dir))
		}, OK, "agree before the newest segment"},
		"oldest": {func(dir string) error { return os.RemoveAll(filepath.Join(dir, "idx/segments/2020/01/16")) }, OK,
			"agree"}, // retention
	} {
		path := copied(t, "meta", "idx", "log")
		if err := tc.spoil(path); err != nil {
			t.Fatal(err)
		}
		files, err := dir.New(path)
		if err != nil {
			t.Fatal(err)
		}
		b := &Bridge{Dir: path, Options: &bridge.Options{Feed: bridge.Feed{
			Source: source.New(files, source.Options{Copy: true}), ID: "feed"}}}
		var found Findings
		found.feed(t.Context(), b, time.Now())
		one := slices.DeleteFunc(slices.Clone(found), func(f Finding) bool { return f.Check != "copy" })
		if len(one) != 1 || one[0].Status != tc.status || !strings.Contains(one[0].Detail, tc.detail) {
			t.Errorf("%s: %+v", name, found)
		}
		for _, f := range found {
			if f.Status != OK && f.Do != status.CopyAgain {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}

// A document that was copied in part has to do with neither network nor credentials.
func TestHalfADocument(t *testing.T) {
	path := copied(t, "meta", "idx", "log")
	if err := os.WriteFile(filepath.Join(path, "meta/segments.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := dir.New(path)
	if err != nil {
		t.Fatal(err)
	}
	b := &Bridge{Dir: path, Options: &bridge.Options{Feed: bridge.Feed{
		Source: source.New(files, source.Options{Copy: true})}}}
	var found Findings
	found.feed(t.Context(), b, time.Now())
	if len(found) != 1 || !strings.Contains(found[0].Do, "copy it again") {
		t.Errorf("%+v", found)
	}
}
