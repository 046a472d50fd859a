package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blobfeed/internal/testing/ceiling"
)

// FuzzSettings: whatever is in a settings file, reading it, for many bridges and for one, ends with settings or an error
// of a bounded length, in little memory and time.
func FuzzSettings(f *testing.F) {
	for _, text := range []string{
		"kafka_brokers: x:1\nbridges: {a: {source_url: 'file:///x', topic: a}, b: {preset: log}}\n",
		"kafka: {brokers: [a:1, b:2], tls_enabled: true}\ntopic: x.{account}\nbridges:\n  photos:\n    source: {url: y}\n",
		"bridges: [a]", "bridges:", "a: &x [*x]", "a: &a {b: 1}\nbridges: {c: {<<: *a}}", "x: !!binary aGk=", "---\n---\n",
		"a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\nd: [*c,*c,*c,*c]\n", "\xff\xfe", "\t", "{", "poll_interval: 1",
		strings.Repeat("{a: ", 200), strings.Repeat("[", 200), "k: |\n" + strings.Repeat(" x\n", 100),
		"bridges: {" + names(300) + "}", names(300),
	} {
		f.Add(text)
	}
	path := filepath.Join(f.TempDir(), "bridge.yaml")
	f.Setenv("BRIDGE_CONFIG", path)
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		ceiling.Hold(t, 64<<20+2000*uint64(len(text)), func() {
			fleet, err := Environ().LoadFleet(noMore)
			if err == nil && fleet != nil {
				err = fleet.Err()
			}
			bounded(t, text, err)
			_, err = Environ().Load(true)
			bounded(t, text, err)
		})
	})
}

// bounded fails if an error is much longer than the text that it is about.
func bounded(t *testing.T, text string, err error) {
	t.Helper()
	if err != nil && len(err.Error()) > 64<<10+1000*len(text) {
		t.Errorf("an error of %d bytes about %d", len(err.Error()), len(text))
	}
}
