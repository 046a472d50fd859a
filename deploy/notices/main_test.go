package main

import (
	"os"
	"strings"
	"testing"
)

// What is shipped says what is in the programs, and nothing that the project keeps for tests only is in one of them.
func TestNotices(t *testing.T) {
	var fresh strings.Builder
	if err := write(&fresh); err != nil {
		t.Fatal(err)
	}
	shipped, err := os.ReadFile("../../THIRD_PARTY_NOTICES")
	if err != nil {
		t.Fatal(err)
	}
	if string(shipped) != fresh.String() {
		t.Error("THIRD_PARTY_NOTICES is not what the programs hold: run make docs")
	}
	for _, module := range []string{
		"github.com/twmb/franz-go (LICENSE)", "the Go standard library and runtime (LICENSE)",
		"arrow-go/v18 (NOTICE.txt)",
	} {
		if !strings.Contains(fresh.String(), module) {
			t.Errorf("there is no %s", module)
		}
	}
}

// hamba/avro is archived upstream, with open advisories. It is an oracle of tests, and in no program for any
// platform.
func TestNoProgramHoldsTestsOnlyModules(t *testing.T) {
	mods, err := modules()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mods {
		if strings.HasPrefix(m.path, "github.com/hamba/") {
			t.Errorf("the program holds %s: %v", m.path, m.packages)
		}
	}
	if len(mods) < 20 {
		t.Errorf("%d modules: the list is not that of the program", len(mods))
	}
}

// The platforms are those that are released.
func TestPlatforms(t *testing.T) {
	release, err := os.ReadFile("../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"goos: [linux, darwin, windows]", "goarch: [amd64, arm64]"} {
		if !strings.Contains(string(release), line) {
			t.Errorf("the releases are not for %s", line)
		}
	}
}
