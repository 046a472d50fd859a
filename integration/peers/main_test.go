package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/testing/fakebroker"
)

// The versions that the results name are those that the package managers install.
func TestLibrariesArePinned(t *testing.T) {
	for _, p := range peers {
		if p.name == bridge {
			continue
		}
		pins, err := os.ReadFile(filepath.Join(p.name, p.pins))
		if err != nil {
			t.Fatal(err)
		}
		for _, library := range p.libraries {
			name, version, _ := strings.Cut(library, " ")
			if !strings.Contains(string(pins), name) || !strings.Contains(string(pins), version) {
				t.Errorf("%s/%s does not pin %s", p.name, p.pins, library)
			}
		}
	}
}

// The charts are those of the results in the repository.
func TestChartsAreFresh(t *testing.T) {
	r, err := readReport("results.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, theme := range themes {
		want := r.svg(theme)
		for d := xml.NewDecoder(bytes.NewReader(want)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("the %s chart is not XML: %v", theme.name, err)
			}
		}
		have, err := os.ReadFile(filepath.Join("..", "..", "docs", "images", "peers-"+theme.name+".svg"))
		if err != nil || !bytes.Equal(have, want) {
			t.Errorf("the %s chart is not of these results (%v): run go run ./integration/peers -draw", theme.name, err)
		}
	}
}

// A record counts by its event, whoever wrote it, and a marker is none.
func TestCount(t *testing.T) {
	brokers := fakebroker.New(t).ListenAddrs()
	if err := createTopic(t.Context(), brokers, "t"); err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.DefaultProduceTopic("t"))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	deletion := kgo.Record{Value: []byte(`{"after":null}`),
		Headers: []kgo.RecordHeader{{Key: "ce_id", Value: []byte("c")}}}
	for _, r := range []*kgo.Record{kgo.StringRecord(`{"id":"a"}`), kgo.StringRecord(`{"id": "b"}`), &deletion,
		kgo.StringRecord(`{"id":"a"}`), kgo.StringRecord(`{"resolved":"1"}`)} {
		if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	f := feed{ids: map[string]int{"a": 0, "b": 0, "c": 0, "d": 0}}
	delivered, twice, err := count(t.Context(), brokers, "t", f, 1)
	if delivered != 3 || twice != 1 || err != nil {
		t.Errorf("%d events, %d of them twice, error %v; want 3, 1 and none", delivered, twice, err)
	}
	f.ids["b"] = 1
	if _, _, err := count(t.Context(), brokers, "t", f, 1); err == nil {
		t.Error("an event of a segment that was not to be read is no error")
	}
}
