package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// set makes the environment of a test.
func set(t *testing.T, env map[string]string) {
	t.Helper()
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, Prefix) {
			t.Setenv(name, "") // restores it afterwards
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for k, v := range env {
		t.Setenv(k, v)
	}
}

func TestDefaults(t *testing.T) {
	set(t, map[string]string{"BRIDGE_SOURCE_URL": "file:///feed", "BRIDGE_KAFKA_BROKERS": "a:1,b:2"})
	c, err := Load(true)
	if err != nil {
		t.Fatal(err)
	}
	if c.Name != "blobfeed" || c.CommitInterval != time.Second || c.TxnBytes != 64<<20 || len(c.KafkaBrokers) != 2 || c.Instance == "" {
		t.Errorf("%+v", c)
	}
}

// Every problem is told at once, by the name of its variable, and no value that may be a secret is shown.
func TestAllProblemsAtOnce(t *testing.T) {
	set(t, map[string]string{
		"BRIDGE_KAFKA_BROKERS": " ", "BRIDGE_COMMIT_INTERVAL": "soon", "BRIDGE_TXN_RECORDS": "many", "BRIDGE_TXN_BYTES": "-1MiB", "BRIDGE_UPDATED": "perhaps",
		"BRIDGE_DELIVERY": "twice", "BRIDGE_TOPIK": "x", "BRIDGE_NAME": "a/b", "BRIDGE_SOURCE_KEY": "hunter2", "BRIDGE_SOURCE_KEY_FILE": "/hunter2",
	})
	_, err := Load(true)
	if err == nil {
		t.Fatal("no error")
	}
	for _, name := range []string{"SOURCE_URL", "KAFKA_BROKERS", "COMMIT_INTERVAL", "TXN_RECORDS", "TXN_BYTES", "UPDATED", "DELIVERY", "TOPIK", "NAME", "SOURCE_KEY"} {
		if !strings.Contains(err.Error(), "BRIDGE_"+name) {
			t.Errorf("%s is not told", name)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a secret is shown: %v", err)
	}
}

func TestSecretFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	set(t, map[string]string{"BRIDGE_SOURCE_URL": "http://x/y", "BRIDGE_SOURCE_KEY_FILE": file})
	t.Setenv("BRIDGE_SOURCE_KEY", "")
	c, err := Load(false)
	if err != nil {
		t.Fatal(err)
	}
	if c.SourceKey != "hunter2" || c.SourceKey.String() != "(set)" {
		t.Errorf("key %q, shown as %s", string(c.SourceKey), c.SourceKey)
	}
	if err := os.WriteFile(file, []byte("hunter3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if fresh, err := c.Reread(); err != nil || fresh.SourceKey != "hunter3" || c.SourceKey != "hunter2" {
		t.Errorf("after a rotation: %v", err)
	}
}

// The reference names variables as envconfig reads them.
func TestReferenceNames(t *testing.T) {
	for _, s := range describe(reflect.TypeFor[Config]()) {
		if s.desc == "" {
			t.Errorf("%s has no description", s.name)
		}
	}
	set(t, map[string]string{"BRIDGE_SOURCE_URL": "file:///feed", "BRIDGE_SOURCE_SAS": "sig", "BRIDGE_KEY_IN_VALUE": "false", "BRIDGE_READ_SIZE": "1MiB"})
	c, err := Load(false)
	if err != nil {
		t.Fatal(err)
	}
	if c.SourceSAS != "sig" || c.KeyInValue == nil || *c.KeyInValue || c.ReadSize != 1<<20 {
		t.Errorf("%+v", c)
	}
}
