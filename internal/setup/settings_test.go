package setup

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"blobfeed/envelope"
	"blobfeed/internal/config"
	"blobfeed/internal/kafka"
	"blobfeed/offsets"
	"blobfeed/source/azure"
)

// What is not set is as the envelope has it, and fits.
func TestOutputDefaults(t *testing.T) {
	base := map[string]string{
		"BRIDGE_SOURCE_URL":    "file:///feed",
		"BRIDGE_KAFKA_BROKERS": "a:1",
		"BRIDGE_REGISTRY_URL":  "http://r:1",
	}
	for _, f := range []string{"json", "avro"} {
		for _, e := range []string{"wrapped", "bare", "row", "key_only", "enriched"} {
			if f == "avro" && e == "row" {
				continue
			}
			setVariables(t, base)
			t.Setenv("BRIDGE_FORMAT", f)
			t.Setenv("BRIDGE_ENVELOPE", e)
			c, err := Examined(config.Environ().Load(true))
			if err != nil {
				t.Fatalf("%s, %s: %v", f, e, err)
			}
			o, _ := Record(c)
			if want := (map[string]envelope.Markers{"enriched": envelope.MarkersTopic})[e]; o.Markers != want {
				t.Errorf("%s, %s: markers %s", f, e, o.Markers)
			}
			if want := (map[string]envelope.KeyFormat{"avro": envelope.KeyAvro})[f]; o.KeyFormat != want {
				t.Errorf("%s, %s: keys %s", f, e, o.KeyFormat)
			}
			if o.Updated != (e == "wrapped" || e == "enriched" || f == "json" && e != "key_only") {
				t.Errorf("%s, %s: updated %t", f, e, o.Updated)
			}
		}
	}
}

// Every setting of the output reaches the encoder's options.
func TestOutputSettings(t *testing.T) {
	setVariables(t, map[string]string{
		"BRIDGE_SOURCE_URL": "file:///feed", "BRIDGE_KAFKA_BROKERS": "a:1", "BRIDGE_REGISTRY_URL": "http://r:1, https://s:2/path", "BRIDGE_FORMAT": "avro", "BRIDGE_ENVELOPE": "enriched",
		"BRIDGE_KEY_FORMAT": "string", "BRIDGE_OPTIONS": "diff,topic_in_value, mvcc_timestamp", "BRIDGE_ENRICHED_PROPERTIES": "source", "BRIDGE_DELETES": "both", "BRIDGE_AVRO_TIMESTAMPS": "millis",
		"BRIDGE_RESOLVED_TO": "off", "BRIDGE_HEADERS": "none", "BRIDGE_EXTRA_HEADERS": "a=b=c,d=", "BRIDGE_TOPIC": "p-x.{container}",
	})
	c, err := Examined(config.Environ().Load(true))
	if err != nil {
		t.Fatal(err)
	}
	o, _ := Record(c)
	if o.Format != envelope.Avro || o.Envelope != envelope.Enriched || o.KeyFormat != envelope.KeyString || o.Updated || !o.Diff || o.KeyInValue || !o.TopicInValue ||
		!o.MVCCTimestamp || o.Properties != envelope.Source || o.Deletes != envelope.DeletesBoth || o.AvroTimestamps != envelope.Millis ||
		o.Markers != envelope.MarkersOff || o.Headers != envelope.HeadersNone || len(o.ExtraHeaders) != 2 ||
		string(o.ExtraHeaders[0].Value) != "b=c" ||
		o.ExtraHeaders[1].Key != "d" {
		t.Errorf("%+v", o)
	}
	topics, err := envelope.NewTopics(c.Topic, "")
	if err != nil {
		t.Fatal(err)
	}
	if name, err := topics.Name("", "$web"); name != "p-x._u0024_web" || err != nil {
		t.Errorf("topic %s, %v", name, err)
	}
	if len(c.RegistryURL) != 2 || c.RegistryURL[1] != "https://s:2/path" {
		t.Errorf("registry %q", c.RegistryURL)
	}
}

// What does not fit is told in CockroachDB's words, what can't be read by the setting's name, all at once.
func TestOutputProblems(t *testing.T) {
	locked := filepath.Join(t.TempDir(), "k.pem")
	if err := os.WriteFile(locked, []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env  map[string]string
		says []string
	}{
		{map[string]string{"FORMAT": "avro"}, []string{"BRIDGE_REGISTRY_URL: required"}},
		{map[string]string{"FORMAT": "avro", "ENVELOPE": "row", "REGISTRY_URL": "r:8081"}, []string{
			"BRIDGE_ENVELOPE: envelope=row is not supported with format=avro", "BRIDGE_REGISTRY_URL: want http://"}},
		{map[string]string{"ENVELOPE": "key_only", "OPTIONS": "updated,diff"},
			[]string{"BRIDGE_OPTIONS: updated is only usable with envelope=wrapped or envelope=enriched",
				"\nBRIDGE_OPTIONS: diff is only usable with"}},
		{map[string]string{"ENVELOPE": "round", "FORMAT": "xml", "DELETES": "never", "KEY_FORMAT": "y", "EVENTS": "z", "HEADERS": "h", "RESOLVED_TO": "nobody", "EXTRA_HEADERS": "x"},
			[]string{`BRIDGE_ENVELOPE: invalid value "round": want one of wrapped`, "BRIDGE_FORMAT", "BRIDGE_DELETES", "BRIDGE_KEY_FORMAT", "BRIDGE_EVENTS", "BRIDGE_HEADERS", "BRIDGE_RESOLVED_TO", "BRIDGE_EXTRA_HEADERS"}},
		{map[string]string{"START": "now"}, []string{`BRIDGE_START: "now" is neither a time such as ` +
			`2026-01-31T12:00:00Z or 2026-01-31, nor the text of an "updated", nor earliest or latest`}},
		{map[string]string{"START": "2020-05-29T17:00"}, []string{
			`BRIDGE_START: "2020-05-29T17:00" is no time: want seconds and a time zone, as in 2026-01-31T12:00:00Z`}},
		{map[string]string{"SOURCE_URL": "file:/feed"}, []string{"BRIDGE_SOURCE_URL: want file:///<absolute path>"}},
		{map[string]string{"START": "2020-05-29", "END_TIME": "2020-05-27"},
			[]string{"BRIDGE_END_TIME: it is before BRIDGE_START (2020-05-29)"}},
		{map[string]string{"OPTIONS": "!before"}, []string{"BRIDGE_OPTIONS: !before is only usable with envelope=enriched"}},
		{map[string]string{"ENVELOPE": "enriched", "OPTIONS": "diff,!before"},
			[]string{"diff is not usable with !before"}},
		{map[string]string{"TOPIC": "{blob}", "REGISTRY_URL": "http://me:hunter2@r:1"}, []string{`topic "{blob}"`, "REGISTRY_PASSWORD"}},
		{map[string]string{"HTTP_CERT_FILE": "c", "HTTP_HOSTS": "http://a"}, []string{
			"BRIDGE_HTTP_CERT_FILE: set it together with BRIDGE_HTTP_KEY_FILE", "BRIDGE_HTTP_HOSTS: want host names"}},
		{map[string]string{"COLUMNS": "path,size"}, []string{"BRIDGE_COLUMNS: there is no column size; docs"}},
		{map[string]string{"COLUMNS": "etagg"}, []string{"BRIDGE_COLUMNS: there is no column etagg; did you mean etag?"}},
		{map[string]string{"START": "2020/03/01/0000"}, []string{
			`BRIDGE_START: "2020/03/01/0000" is no time: it names a segment: write 2020-03-01T00:00:00Z`}},
		{map[string]string{"KAFKA_TLS_ENABLED": "true", "KAFKA_TLS_CA_FILE": "none.pem"},
			[]string{"BRIDGE_KAFKA_TLS_CA_FILE: reading the certificates of authorities: open none.pem"}},
		{map[string]string{"KAFKA_TLS_ENABLED": "true", "KAFKA_TLS_CERT_FILE": "c.pem", "KAFKA_TLS_KEY_FILE": "k.pem"},
			[]string{"BRIDGE_KAFKA_TLS_CERT_FILE: reading the client certificate: open c.pem"}},
		{map[string]string{"KAFKA_TLS_ENABLED": "true", "KAFKA_TLS_CERT_FILE": "c.pem", "KAFKA_TLS_KEY_FILE": locked},
			[]string{"BRIDGE_KAFKA_TLS_KEY_FILE: reading the client certificate: " + locked + ": the private key is encrypted"}},
		{map[string]string{"TOPIC_LIMIT": "10001"}, []string{`BRIDGE_TOPIC_LIMIT: invalid value "10001": want 1 to 10000`}},
		{map[string]string{"TOPIC": "blobfeed.dlq"}, []string{"of the bridge's own"}},
		{map[string]string{"NAME": "photos", "TOPIC": "photos.{container}"}, []string{"BRIDGE_TOPIC: records could go to photos.offsets", "records could go to photos.dlq"}},
		{map[string]string{"TOPIC": strings.Repeat("x", 200) + "{container}"}, []string{"BRIDGE_TOPIC: names of up to 2"}},
		{map[string]string{"REGISTRY_USERNAME": "me", "REGISTRY_CERT_FILE": "c"}, []string{"REGISTRY_PASSWORD", "REGISTRY_KEY_FILE"}},
	} {
		env := map[string]string{"BRIDGE_SOURCE_URL": "file:///feed", "BRIDGE_KAFKA_BROKERS": "a:1"}
		for name, value := range c.env {
			env["BRIDGE_"+name] = value
		}
		t.Run("", func(t *testing.T) {
			setVariables(t, env)
			_, err := Examined(config.Environ().Load(true))
			if err == nil {
				t.Fatalf("%v is accepted", c.env)
			}
			for _, text := range c.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%v: %v, want %s", c.env, err, text)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("a secret is shown: %v", err)
			}
		})
	}
}

// setVariables makes the environment of a test.
func setVariables(t *testing.T, env map[string]string) {
	t.Helper()
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, config.Prefix) {
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

// What a bridge stored under the settings of former versions, a prefix of the topic among them, fits the new ones.
func TestStoredSettingsStayGood(t *testing.T) {
	setVariables(t, map[string]string{"BRIDGE_SOURCE_URL": "file://" + t.TempDir(),
		"BRIDGE_KAFKA_BROKERS": "a:1", "BRIDGE_TOPIC": "p-{container}", "BRIDGE_OPTIONS": "none"})
	c, err := Examined(config.Environ().Load(true))
	if err != nil {
		t.Fatal(err)
	}
	o, err := Options(c, Observe{})
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]string{ // by TOPIC_PREFIX=p- TOPIC={container} UPDATED=false KEY_IN_VALUE=false
		"BRIDGE_TOPIC": "p-{container}", "BRIDGE_EVENTS": "state", "BRIDGE_FORMAT": "json", "BRIDGE_ENVELOPE": "wrapped",
		"BRIDGE_KEY_FORMAT": "json_array", "BRIDGE_PARTITIONER": "murmur2", "BRIDGE_RESOLVED_TO": "inline",
		"BRIDGE_START": "earliest", "BRIDGE_END_TIME": "", "BRIDGE_AVRO_TIMESTAMPS": "micros",
		"BRIDGE_DELIVERY": "exactly_once",
	}
	now := maps.Clone(stored)
	now["BRIDGE_COLUMNS"], now["BRIDGE_MAPS"] = "", "native" // later ones
	if !maps.Equal(o.Records.Frozen, now) {
		t.Errorf("frozen: %v, want %v", o.Records.Frozen, now)
	}
	state := &offsets.State{Frontier: &offsets.Frontier{Feed: o.Feed.ID, Settings: stored}}
	if err := o.Stored().Fit(state); err != nil {
		t.Error(err)
	}
	stored["BRIDGE_TOPIC"] = "{container}"
	if o.Stored().Fit(state) == nil {
		t.Error("another topic is accepted")
	}
}

// The values that package config takes are those that their users know.
func TestValuesOfSettings(t *testing.T) {
	for name, known := range map[string][]string{"SourceAuth": azure.Auths, "KafkaSASLMechanism": kafka.Mechanisms} {
		if have := taken(name); !slices.Equal(have, known) {
			t.Errorf("%s takes %q, and %q are known", name, have, known)
		}
	}
	var o envelope.Options
	words := append(slices.Sorted(maps.Keys(optionFields(&o))), "none", "!before")
	have := taken("Options")
	slices.Sort(have)
	slices.Sort(words)
	if !slices.Equal(have, words) {
		t.Errorf("OPTIONS takes %q, and %q are known", have, words)
	}
}

// taken returns the values that a field of the settings takes.
func taken(field string) []string {
	f, _ := reflect.TypeFor[config.Config]().FieldByName(field)
	return strings.Fields(f.Tag.Get("oneof"))
}

// A list of options turns off what it does not have.
func TestOptions(t *testing.T) {
	for text, want := range map[string]envelope.Options{
		"":                        {Updated: true, KeyInValue: true},
		"none":                    {},
		"diff":                    {Diff: true},
		"updated, key_in_value":   {Updated: true, KeyInValue: true},
		"mvcc_timestamp,updated":  {Updated: true, MVCCTimestamp: true},
		"topic_in_value,updated,": {Updated: true, TopicInValue: true},
		"!before":                 {Updated: true, KeyInValue: true, NoBefore: true},
		"none,!before":            {NoBefore: true},
		"!before,updated":         {Updated: true, NoBefore: true},
	} {
		setVariables(t, map[string]string{"BRIDGE_SOURCE_URL": "file:///x", "BRIDGE_KAFKA_BROKERS": "a:1",
			"BRIDGE_ENVELOPE": "enriched", "BRIDGE_OPTIONS": text})
		c, err := Examined(config.Environ().Load(true))
		if err != nil {
			t.Fatal(err)
		}
		o, _ := Record(c)
		have := envelope.Options{Updated: o.Updated, Diff: o.Diff, KeyInValue: o.KeyInValue,
			TopicInValue: o.TopicInValue, MVCCTimestamp: o.MVCCTimestamp, NoBefore: o.NoBefore}
		if !reflect.DeepEqual(have, want) {
			t.Errorf("%q: %+v, want %+v", text, have, want)
		}
	}
}

// Settings with which a sweep can't repair the topics are rejected at the start, not when history is lost.
func TestRescanNeedsASweep(t *testing.T) {
	for problem, extra := range map[string]map[string]string{
		"":             {"BRIDGE_TOPIC": "t"},
		"TOPIC_SHARED": {"BRIDGE_TOPIC_SHARED": "true"},
		"key_only":     {"BRIDGE_ENVELOPE": "key_only"},
		"BlobDeleted":  {"BRIDGE_EVENT_TYPES": "BlobCreated"},
	} {
		t.Run(problem, func(t *testing.T) {
			setVariables(t, map[string]string{
				"BRIDGE_SOURCE_URL": "https://account.blob.core.windows.net", "BRIDGE_KAFKA_BROKERS": "a:1",
				"BRIDGE_ON_GAP": "rescan",
			})
			for name, value := range extra {
				t.Setenv(name, value)
			}
			_, err := Examined(config.Environ().Load(true))
			if problem == "" && err != nil || problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
				t.Fatalf("%v", err)
			}
		})
	}
}
