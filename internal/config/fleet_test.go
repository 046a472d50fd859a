package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func noMore(*Config) []error { return nil }

// fleet loads a file of bridges, beside variables.
func fleet(t *testing.T, env map[string]string, text string) (*Fleet, error) {
	t.Helper()
	all := map[string]string{"BRIDGE_CONFIG": ""}
	maps.Copy(all, env)
	set(t, all)
	settingsFile(t, text)
	return Environ().LoadFleet(noMore)
}

// A bridge's own settings win over the environment, and the environment over the common settings.
func TestFleetPrecedence(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(secret, []byte("of the file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := os.Environ()
	f, err := fleet(t, map[string]string{"BRIDGE_POLL_INTERVAL": "20s", "BRIDGE_COMMIT_INTERVAL": "2s"}, `
kafka: {brokers: [a:1]}
preset: event_hubs
poll_interval: 10s
commit_interval: 3s
topic: "{account}.{container}"
source:
  auth: shared_key
  key_file: `+secret+`
bridges:
  photos:
    source_url: https://photos.blob.core.windows.net
    poll_interval: 30s
    preset: table
  music:
    source:
      url: https://music.blob.core.windows.net
      key: of its own
`)
	if err != nil || f == nil || f.Err() != nil || len(f.Bridges) != 2 {
		t.Fatalf("%+v: %v", f, err)
	}
	music, photos := f.Bridges[0], f.Bridges[1]
	if music.Name != "music" || photos.Name != "photos" || photos.SourceURL != "https://photos.blob.core.windows.net" ||
		music.KafkaBrokers[0] != "a:1:9093" && music.KafkaBrokers[0] != "a:1" {
		t.Errorf("%+v %+v", music, photos)
	}
	if photos.PollInterval.Seconds() != 30 || music.PollInterval.Seconds() != 20 ||
		f.Common.PollInterval.Seconds() != 20 || photos.CommitInterval.Seconds() != 2 {
		t.Errorf("photos polls every %s, music every %s", photos.PollInterval, music.PollInterval)
	}
	if photos.SourceKey != "of the file" || music.SourceKey != "of its own" {
		t.Error("a bridge has the key of another one")
	}
	if !slices.Equal(photos.Preset, List{"table", "event_hubs"}) || photos.Envelope != "row" || !photos.KafkaTLSEnabled ||
		music.Envelope != "wrapped" {
		t.Errorf("presets: %v, %v", photos.Preset, music.Preset)
	}
	if from := photos.From("POLL_INTERVAL"); from != "file "+f.Path {
		t.Errorf("from %s", from)
	}
	if len(os.Environ()) < len(before) || os.Getenv("BRIDGE_NAME") != "" || os.Getenv("BRIDGE_POLL_INTERVAL") != "20s" {
		t.Error("the environment has changed")
	}
}

// Each problem names its bridge; what all have is reported once; the good ones can run.
func TestFleetProblems(t *testing.T) {
	f, err := fleet(t, nil, `
kafka: {brokers: [a:1]}
bridges:
  good: {source_url: "file:///a", topic: a}
  process: {source_url: "file:///a", topic: b, kafka_brokers: [b:1], http: {addr: off}, name: x, instance: y}
  "bad name": {source_url: "file:///a", topic: c}
  poll: {source_url: "file:///a", topic: d, poll_interval: never, polinterval: 1s}
  service: {source_url: "file:///a", topic: e, preset: event_hubs}
  twin: {source_url: "file:///a", topic: f}
  twin2: {source_url: "file:///b", topic: f}
  account: {source_url: "file:///a", topic: "{account}", source_account: z}
  account2: {source_url: "file:///b", topic: "{account}", source_account: b}
  slash: {source_url: "https://a.blob.core.windows.net", topic: "g.{account}"}
  slash2: {source_url: "https://a.blob.core.windows.net/", topic: "g.{account}"}
  copy: {source_url: "file:///a", topic: "h.{account}", source_account: z}
  copy2: {source_url: "file:///b", topic: "h.{account}", source_account: z}
  nothing:
`)
	if err != nil {
		t.Fatal(err)
	}
	var good []string
	for _, c := range f.Bridges {
		good = append(good, c.Name)
	}
	if !slices.Equal(good, []string{"account", "account2", "good"}) {
		t.Errorf("good: %v", good)
	}
	text := f.Err().Error()
	for _, want := range []string{
		"bridge process: " + f.Path + ":5: kafka_brokers: applies to all bridges of the process: move it out of bridges",
		"bridge process: " + f.Path + ":5: http_addr: applies to all bridges",
		"bridge process: " + f.Path + ":5: name: the bridge has the name under which its settings stand",
		"bridge process: " + f.Path + ":5: instance: applies to all",
		"bridge bad name: BRIDGE_NAME (" + f.Path + ":6): invalid value \"bad name\": want letters",
		"bridge poll: BRIDGE_POLL_INTERVAL (" + f.Path + ":7): want a duration",
		"bridge poll: " + f.Path + ":7: polinterval: unknown setting; did you mean poll_interval?",
		"bridge service: BRIDGE_PRESET (" + f.Path + ":8): event_hubs applies to all bridges",
		"bridge twin: BRIDGE_TOPIC (" + f.Path + ":9): bridge twin2 writes to the same topic f",
		"bridge twin2: BRIDGE_TOPIC (" + f.Path + ":10): bridge twin writes to the same topic f",
		"bridge slash2: BRIDGE_TOPIC (" + f.Path + ":14): bridge slash reads the same feed and writes to the same topic g",
		"bridge copy: BRIDGE_TOPIC (" + f.Path + ":15): bridge copy2 is of the same account z and writes to the same " +
			"topic h.z: remove one, give it another topic, or correct its BRIDGE_SOURCE_ACCOUNT\n",
		"bridge nothing: BRIDGE_SOURCE_URL: required",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s\nlacks %s", text, want)
		}
	}
}

// names returns so many short names with an empty value, for braces.
func names(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("x%d: ", i))
	}
	return strings.Join(all, ",")
}

// Problems of the whole file are reported once.
func TestFleetFileProblems(t *testing.T) {
	const bridges = "bridges: {a: {source_url: \"file:///a\", topic: a}, b: {source_url: \"file:///b\", topic: b}}\n"
	for text, want := range map[string]string{
		"kafka_brokers: x:1\nbridges: [a]\n":            "bridges: want a mapping of names to settings",
		"kafka_brokers: x:1\nbridges: {a: {}, a: {}}\n": "bridge a: defined a second time",
		"kafka_brokers: x:1\nbridges: {a: {X: 1}}\n":    "bridge.yaml:2: X: write names in lower case: x",
		bridges: "BRIDGE_KAFKA_BROKERS: required",
		"kafka_brokers: x:1\nname: c\n" + bridges:      "name: each bridge has its own name",
		"kafka_brokers: x:1\nhttp_addr: x\n" + bridges: "BRIDGE_HTTP_ADDR",
		"bridges:\n":                                                "BRIDGE_KAFKA_BROKERS: required",
		"bridges: {" + names(10001) + "}\n":                         "10001 bridges are more than a process can run",
		"bridges: {a: {" + names(1001) + "}}\n":                     "1001 names in one group of settings",
		strings.ReplaceAll(names(1001), ",", "\n") + "\n" + bridges: "1001 names in one group of settings",
		"#" + strings.Repeat("x", maxFile) + "\n" + bridges:         "",
	} {
		f, err := fleet(t, nil, text)
		if f == nil && err == nil { // for Load to report
			_, err = Environ().Load(true)
		} else if err == nil {
			err = f.Err()
		}
		if err == nil || strings.Count(err.Error(), want) != 1 && want != "" {
			t.Errorf("%.80s: %v, want once: %s", text, err, want)
		}
	}
	if _, err := fleet(t, nil, "#"+strings.Repeat("x", maxFile)+"\n"+bridges); err != nil {
		t.Error("a file that is too large is reported twice")
	}
	if _, err := Environ().Load(true); err == nil || !strings.Contains(err.Error(), "has more than 4 MiB") {
		t.Errorf("a file that is too large: %v", err)
	}
}

// BRIDGE_NAME chooses a bridge of the file, for every verb.
func TestFleetChosen(t *testing.T) {
	const text = "kafka_brokers: x:1\nbridges: {photos: {source_url: \"file:///a\"}, b: {source_url: \"file:///b\"}}\n"
	if f, err := fleet(t, map[string]string{"BRIDGE_NAME": "photos"}, text); f != nil || err != nil {
		t.Errorf("%v, %v", f, err)
	}
	if c, err := Environ().Load(true); err != nil || c.Name != "photos" || c.SourceURL != "file:///a" {
		t.Errorf("%v", err)
	}
	for name, want := range map[string]string{
		"":      "bridge.yaml has many bridges: set BRIDGE_NAME to one of b, photos; check and status also take --all",
		"photo": `bridge.yaml has no bridge "photo", which BRIDGE_NAME names; did you mean photos?`,
		"other": `bridge.yaml has no bridge "other", which BRIDGE_NAME names: set it to one of b, photos`,
	} {
		t.Setenv("BRIDGE_NAME", name)
		if _, err := Environ().Load(true); err == nil || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Settings that differ are found, but for the content of files with secrets, which is read when it is needed.
func TestFleetChanged(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "key")
	load := func(content, poll, key string) *Config {
		if err := os.WriteFile(secret, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := fleet(t, nil, "kafka_brokers: x:1\n"+
			"bridges: {a: {source_url: \"file:///a\", source_auth: shared_key, poll_interval: "+poll+", "+key+"}}\n")
		if err != nil || len(f.Bridges) != 1 {
			t.Fatalf("%v %v", err, f.Err())
		}
		return f.Bridges[0]
	}
	// The path of the settings file differs, too.
	inFile, again := load("one", "1s", "source_key_file: "+secret), load("two", "1s", "source_key_file: "+secret)
	if changed := again.Changed(inFile); len(changed) > 0 {
		t.Errorf("changed: %v", changed)
	}
	if changed := load("one", "2s", "source_key: one").Changed(inFile); !slices.Equal(changed,
		[]string{"SOURCE_KEY", "POLL_INTERVAL"}) {
		t.Errorf("changed: %v", changed)
	}
	if changed := load("", "1s", "source_key: two").Changed(load("", "1s", "source_key: one")); len(changed) != 1 {
		t.Errorf("changed: %v", changed)
	}
}
