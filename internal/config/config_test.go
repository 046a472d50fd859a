package config

import (
	"os"
	"path/filepath"
	"slices"
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
	c, err := Environ().Load(true)
	if err != nil {
		t.Fatal(err)
	}
	if c.Name != "blobfeed" || c.CommitInterval != time.Second || c.TxnBytes != 256<<20 || len(c.KafkaBrokers) != 2 ||
		c.Instance == "" {
		t.Errorf("%+v", c)
	}
}

// An empty variable is one that is not set, whatever the setting takes.
func TestEmptyVariables(t *testing.T) {
	set(t, map[string]string{"BRIDGE_SOURCE_URL": "file:///feed", "BRIDGE_KAFKA_BROKERS": "a:1",
		"BRIDGE_KAFKA_TLS_ENABLED": "", "BRIDGE_COMMIT_INTERVAL": "", "BRIDGE_TXN_BYTES": "", "BRIDGE_TOPIC_LIMIT": "",
		"BRIDGE_DELIVERY": "", "BRIDGE_EVENT_TYPES": "", "BRIDGE_KAFKA_SASL_USERNAME": ""})
	c, err := Environ().Load(true)
	if err != nil || c.CommitInterval != time.Second || c.Delivery != "exactly_once" || c.TxnBytes != 256<<20 {
		t.Errorf("%v: %s, %q, %d", err, c.CommitInterval, c.Delivery, c.TxnBytes)
	}
}

// Every problem is told at once, by the name of its variable, and no value that may be a secret is shown.
func TestAllProblemsAtOnce(t *testing.T) {
	set(t, map[string]string{
		"BRIDGE_KAFKA_BROKERS": " ", "BRIDGE_COMMIT_INTERVAL": "soon", "BRIDGE_TOPIC_LIMIT": "many", "BRIDGE_TXN_BYTES": "-1MiB", "BRIDGE_TOPIC_SHARED": "perhaps",
		"BRIDGE_DELIVERY": "twice", "BRIDGE_TOPIK": "x", "BRIDGE_NAME": "a/b", "BRIDGE_SOURCE_KEY": "hunter2", "BRIDGE_SOURCE_KEY_FILE": "/hunter2",
	})
	_, err := Environ().Load(true)
	if err == nil {
		t.Fatal("no error")
	}
	for _, name := range []string{"SOURCE_URL", "KAFKA_BROKERS", "COMMIT_INTERVAL", "TOPIC_LIMIT", "TXN_BYTES", "TOPIC_SHARED", "DELIVERY", "TOPIK", "NAME", "SOURCE_KEY"} {
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
	set(
		t,
		map[string]string{
			"BRIDGE_SOURCE_URL":      "http://x/y",
			"BRIDGE_SOURCE_AUTH":     "shared_key",
			"BRIDGE_SOURCE_KEY_FILE": file,
		},
	)
	t.Setenv("BRIDGE_SOURCE_KEY", "")
	c, err := Environ().Load(false)
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

// A file that holds no secret is no secret: an empty one would open what it is to protect, a FIFO would stop the start.
func TestFileWithoutASecret(t *testing.T) {
	dir := t.TempDir()
	for what, text := range map[string]string{"is empty": "\n", "more than": strings.Repeat("x", maxSecret+1)} {
		file := filepath.Join(dir, strings.ReplaceAll(what, " ", "-"))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		set(t, map[string]string{"BRIDGE_SOURCE_URL": "http://x/y", "BRIDGE_HTTP_TOKEN_FILE": file})
		if _, err := Environ().Load(false); err == nil || !strings.Contains(err.Error(), "BRIDGE_HTTP_TOKEN_FILE") ||
			!strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := ReadSecret(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory: %v", err)
	}
}

// A file that can't be read is one problem: that the setting is missing follows from it.
func TestMissingFileIsOneProblem(t *testing.T) {
	set(t, map[string]string{"BRIDGE_SOURCE_URL": "http://x/y", "BRIDGE_SOURCE_AUTH": "shared_key",
		"BRIDGE_SOURCE_KEY_FILE": filepath.Join(t.TempDir(), "key"), "BRIDGE_KAFKA_BROKERS": "k:9092",
		"BRIDGE_KAFKA_SASL_MECHANISM": "PLAIN", "BRIDGE_KAFKA_SASL_USERNAME": "u",
		"BRIDGE_KAFKA_SASL_PASSWORD_FILE": filepath.Join(t.TempDir(), "password")})
	_, err := Environ().Load(true)
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 2 ||
		strings.Count(err.Error(), "no such file or directory") != 2 {
		t.Errorf("%q", lines)
	}
}

// The reference names variables as envconfig reads them.
func TestReferenceNames(t *testing.T) {
	for _, s := range table {
		if s.desc == "" {
			t.Errorf("%s has no description", s.name)
		}
		for _, value := range s.oneOf {
			if !strings.Contains(s.desc, value) {
				t.Errorf("the description of %s does not name %s", s.name, value)
			}
		}
	}
	set(
		t,
		map[string]string{
			"BRIDGE_SOURCE_URL":   "file:///feed",
			"BRIDGE_SOURCE_AUTH":  "sas",
			"BRIDGE_SOURCE_SAS":   "sig",
			"BRIDGE_TOPIC_SHARED": "true",
			"BRIDGE_TXN_BYTES":    "1MiB",
		},
	)
	c, err := Environ().Load(false)
	if err != nil {
		t.Fatal(err)
	}
	if c.SourceSAS != "sig" || !c.TopicShared || c.TxnBytes != 1<<20 {
		t.Errorf("%+v", c)
	}
}

// Spaces around the items of a list would select nothing, silently.
func TestLists(t *testing.T) {
	set(
		t,
		map[string]string{
			"BRIDGE_SOURCE_URL":    "file:///feed",
			"BRIDGE_KAFKA_BROKERS": " a:1, b:2,",
			"BRIDGE_EVENT_TYPES":   "BlobCreated, BlobDeleted",
			"BRIDGE_PREFIXES":      " , ",
		},
	)
	c, err := Environ().Load(true)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.KafkaBrokers, List{"a:1", "b:2"}) ||
		!slices.Equal(c.EventTypes, List{"BlobCreated", "BlobDeleted"}) ||
		len(c.Prefixes) != 0 {
		t.Errorf("%q %q %q", c.KafkaBrokers, c.EventTypes, c.Prefixes)
	}
}

// Problems come in the same order each time, and loading leaves the environment as it was.
func TestLoadIsRepeatable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bridge.yaml")
	if err := os.WriteFile(file, []byte("topic: photos\nkafka: {brokers: a:1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	set(t, map[string]string{"BRIDGE_CONFIG": file, "BRIDGE_CONTAINERS": "!", "BRIDGE_PREFIXES": "!",
		"BRIDGE_SUFFIXES": "!", "BRIDGE_EVENT_TYPES": "!", "BRIDGE_COLUMNS": "!", "BRIDGE_DEBUG": "txn_records=5"})
	before := os.Environ()
	_, first := Environ().Load(true)
	for range 20 {
		if _, err := Environ().Load(true); err == nil || err.Error() != first.Error() {
			t.Fatalf("%v, then %v", first, err)
		}
	}
	if after := os.Environ(); !slices.Equal(before, after) {
		t.Errorf("%q, then %q", before, after)
	}
}

// What selects nothing is refused; a type that this version does not know is not.
func TestFilterProblems(t *testing.T) {
	for _, tc := range []struct{ name, value, problem string }{
		{"BLOB_TYPES", "BlockBlob,Block", "want one or more of"},
		{"BLOB_TYPES", "BlockBlob,PageBlob,AppendBlob", ""},
		{"EVENT_TYPES", "BlobCraeted", "did you mean BlobCreated?"},
		{"EVENT_TYPES", "BLOBDELETED", "did you mean BlobDeleted?"},
		{"EVENT_TYPES", "!BlobTierChanged,!Microsoft.Storage.BlobDeleted", "did you mean BlobDeleted?"},
		{"SUFFIXES", "!", "want an item after !"},
		{"OPTIONS", "updated,before", "want one or more of updated"},
		{"OPTIONS", "!diff", `invalid value "!diff": want`},
		{"OPTIONS", "updated,befor", `invalid value "befor": want`},
		{"DELIVERY", "once", `invalid value "once": want one of exactly_once, at_least_once`},
		{"DELIVERY", "Endpoint=sb://a;SharedAccessKey=key", "BRIDGE_DELIVERY: invalid value (hidden): want one of"},
		{"DELIVERY", strings.Repeat("secret", 7), "BRIDGE_DELIVERY: invalid value (hidden): want one of"},
		{"TOPIC_LIMIT", "0", `invalid value "0": want 1 to 10000`},
		{"HTTP_ADDR", "8080", `invalid value "8080": want [host]:port`},
		{"NAME", "a/b", `invalid value "a/b": want letters`},
		{"OPTIONS", "none,updated", "want none alone"},
		{"EVENT_TYPES", "BlobCreated,AppendBlobDataUpdated,BlobLastAccessTimeUpdated,BlobRenamed,ContainerCreated,ContainerDeleted,ContainerPropertiesUpdated", ""},
		{"SOURCE_URL", "file://feed", "absolute path"},
		{"SOURCE_SAS", "sig", "SOURCE_AUTH=sas"},
		{"SOURCE_AUTH", "shared_key", "required for BRIDGE_SOURCE_AUTH=shared_key"},
		{"SOURCE_SAS", "sig", "has no effect without BRIDGE_SOURCE_AUTH=sas"},
	} {
		env := map[string]string{"BRIDGE_SOURCE_URL": "file:///feed"}
		env["BRIDGE_"+tc.name] = tc.value
		set(t, env)
		_, err := Environ().Load(false)
		if tc.problem == "" && err != nil || tc.problem != "" && (err == nil || !strings.Contains(err.Error(), tc.problem)) {
			t.Errorf("%s=%s: %v, want %q", tc.name, tc.value, err, tc.problem)
		}
	}
}

// Quotation marks are those of a shell that never saw them.
func TestQuotedValues(t *testing.T) {
	for _, value := range []string{`"x"`, `'x'`, `"x", "y"`, `"x,y"`} {
		for _, name := range []string{"BRIDGE_TOPIC", "BRIDGE_CONTAINERS", "BRIDGE_SOURCE_URL"} {
			set(t, map[string]string{"BRIDGE_SOURCE_URL": "file:///feed", "BRIDGE_KAFKA_BROKERS": "a:9092", name: value})
			if _, err := Environ().Load(true); err == nil || !strings.Contains(err.Error(), name+": remove the quotation marks") {
				t.Errorf("%s=%s: %v", name, value, err)
			}
		}
	}
	set(t, map[string]string{"BRIDGE_SOURCE_URL": "file:///feed", "BRIDGE_KAFKA_BROKERS": "a:9092",
		"BRIDGE_CONTAINERS": `x,y`, "BRIDGE_PREFIXES": `x/"y",z/'a'`})
	if _, err := Environ().Load(true); err != nil {
		t.Error(err)
	}
}

// A port that no machine has is no reason to go on without a status page.
func TestPortOfTheServer(t *testing.T) {
	for addr, valid := range map[string]bool{
		":8080": true, "[::1]:0": true, ":http": true, "off": true, "localhost:99999": false, ":80x": false, "8080": false,
	} {
		set(t, map[string]string{"BRIDGE_SOURCE_URL": "file:///feed", "BRIDGE_KAFKA_BROKERS": "a:9092",
			"BRIDGE_HTTP_ADDR": addr})
		if _, err := Environ().Load(true); (err == nil) != valid {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func TestPortsOfBrokers(t *testing.T) {
	for brokers, valid := range map[string]bool{
		"a:9092,b": true, "[::1]:9092": true, "a:9092 b:9092": false, "a:9O92": false, "a:65536": false, "a:": false,
	} {
		set(t, map[string]string{"BRIDGE_SOURCE_URL": "file:///feed", "BRIDGE_KAFKA_BROKERS": brokers})
		_, err := Environ().Load(true)
		if (err == nil) != valid || err != nil && !strings.HasPrefix(err.Error(), "BRIDGE_KAFKA_BROKERS: want host:port") {
			t.Errorf("%s: %v", brokers, err)
		}
	}
}
