package config

import (
	"maps"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A setting of a former version is an error that names its successor, which exists; one that is empty is not set.
func TestFormerNames(t *testing.T) {
	successor := regexp.MustCompile(Prefix + "_([A-Z_]+)")
	all := maps.Clone(formerNames)
	all["REGISTRY_TOKEN_FILE"] = formerNames["REGISTRY_TOKEN"] // a secret could be in a file
	for name, advice := range all {
		if _, ok := find(table, name); ok {
			t.Errorf("%s is a setting", name)
		}
		set(t, map[string]string{"BRIDGE_SOURCE_URL": "file:///x", variable(name): "1"})
		if _, err := Environ().Load(false); err == nil || !strings.Contains(err.Error(), variable(name)+": "+advice) {
			t.Errorf("%s: %v", name, err)
		}
		for _, new := range successor.FindAllStringSubmatch(advice, -1) {
			if _, ok := find(table, new[1]); !ok {
				t.Errorf("%s: %s is no setting", name, new[0])
			}
		}
		set(t, map[string]string{"BRIDGE_SOURCE_URL": "file:///x", variable(name): ""})
		if _, err := Environ().Load(false); err != nil {
			t.Errorf("%s is empty: %v", name, err)
		}
	}
}

// BRIDGE_DEBUG reaches the bounds, and its mistakes are reported.
func TestTuning(t *testing.T) {
	set(t, map[string]string{"BRIDGE_SOURCE_URL": "file:///x", "BRIDGE_POLL_INTERVAL": "1s",
		"BRIDGE_DEBUG": "txn_records=7, read_size=64KiB,bundle_bytes=0,txn_records=8"})
	c, err := Environ().Load(false)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Tuning{TxnRecords: 8, ReadSize: 64 << 10, BundleReaders: 16, ScanRound: 10 * time.Second, ShutdownTimeout: 10 * time.Second,
		WatchdogTimeout: 2 * time.Minute, LogRepeat: time.Minute, ReportInterval: 30 * time.Second}); c.Tuning != want {
		t.Errorf("%+v, want %+v", c.Tuning, want)
	}
	if c.QuietInterval() != 20*time.Second {
		t.Errorf("quiet interval %s", c.QuietInterval())
	}
	for text, want := range map[string]string{
		"txn_recrods=7": `unknown name "txn_recrods"`, "txn_records=": "txn_records: want a whole number",
		"txn_records=0":       `txn_records: invalid value "0": want at least 1`,
		"quiet_interval=soon": "quiet_interval: want a duration",
	} {
		set(t, map[string]string{"BRIDGE_SOURCE_URL": "file:///x", "BRIDGE_DEBUG": text})
		if _, err := Environ().Load(false); err == nil || !strings.Contains(err.Error(), "BRIDGE_DEBUG: "+want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The table is sound: fewer than 80 settings, no two of one name, bounds that parse, and defaults within them.
func TestTable(t *testing.T) {
	if len(table) >= 80 {
		t.Errorf("%d settings, want fewer than 80", len(table))
	}
	seen := map[string]bool{}
	defaults := Defaults()
	for i, s := range append(table[:len(table):len(table)], tuning...) {
		if seen[s.name] {
			t.Errorf("%s is twice in the table", s.name)
		}
		seen[s.name] = true
		var settings any = defaults
		if i >= len(table) {
			settings = &defaults.Tuning
		}
		s.checkBounds(settings, func(problem string) { t.Errorf("the default of %s: %s", s.name, problem) })
		for _, bound := range []string{s.min, s.max} {
			if bound == "" {
				continue
			}
			if zero := strings.TrimLeft(bound, "0s") == ""; (s.bound(bound) == 0) != zero {
				t.Errorf("%s: bound %q does not parse", s.name, bound)
			}
		}
		if s.typ.Kind() == reflect.Pointer {
			t.Errorf("%s is a pointer: its default is not in the table", s.name)
		}
	}
	for _, word := range grouped {
		if seen[strings.ToUpper(word)] {
			t.Errorf("%s is a group and a setting", word)
		}
	}
}
