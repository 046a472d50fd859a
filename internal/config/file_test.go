package config

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// settingsFile makes text the settings file of a test, and returns its path.
func settingsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bridge.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BRIDGE_CONFIG", path)
	return path
}

// A file holds any setting, grouped or not; the environment wins, and is left as it was.
func TestSettingsFile(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(secret, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	set(t, map[string]string{"BRIDGE_CONFIG": "", "BRIDGE_NAME": "environment", "BRIDGE_HTTP_TOKEN": "environment",
		"BRIDGE_REGISTRY_PASSWORD_FILE": secret})
	path := settingsFile(t, `
# Comments do not count.
name: file
topic_limit: 17
containers: ["!logs", photos]
commit_interval: 2s
registry:
http_token_file: /nosuch/file
registry_password: file
source:
  url: file:///feed
kafka:
  brokers: [a:1, b:2]
  tls: {enabled: true}
  sasl_mechanism: PLAIN
  sasl_username: me
  sasl_password_file: `+secret+`
poll_interval: ~
`)
	before := os.Environ()
	c, err := Environ().Load(true)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(os.Environ(), before) {
		t.Error("the environment has changed")
	}
	if c.Name != "environment" || c.HTTPToken != "environment" || c.TopicLimit != 17 || c.SourceURL != "file:///feed" ||
		!slices.Equal(c.KafkaBrokers, List{"a:1", "b:2"}) || !c.KafkaTLSEnabled || c.KafkaSASLPassword != "hunter2" ||
		c.RegistryPassword != "hunter2" ||
		!slices.Equal(c.Containers.Excluded(), []string{"logs"}) ||
		!slices.Equal(c.Containers.Included(), []string{"photos"}) ||
		c.CommitInterval != 2*time.Second || c.PollInterval != 15*time.Second {
		t.Errorf("%+v", c)
	}
	for name, want := range map[string]string{"NAME": "environment", "TOPIC_LIMIT": "file " + path,
		"KAFKA_SASL_PASSWORD": "file " + secret, "TOPIC": "default"} {
		if from := c.From(name); from != want {
			t.Errorf("%s comes from %s, want %s", name, from, want)
		}
	}
}

// What a file has wrong is reported all at once, by line, without its values.
func TestSettingsFileProblems(t *testing.T) {
	for text, want := range map[string][]string{
		"nmae: x\ncommit_interval: hunter2\npoll_interval: 1ms\n": {
			"bridge.yaml:1: nmae: unknown setting; did you mean name?",
			"BRIDGE_COMMIT_INTERVAL (", "bridge.yaml:2): want a duration", "bridge.yaml:3): invalid value \"1ms\": want at least 10ms"},
		"kafka: {brokerz: a:1}\nkafka_brokers: a:1\n": {"kafka_brokerz: unknown setting; did you mean kafka_brokers?"},
		"name: a\nname: b\n":                          {"bridge.yaml:2: name: set a second time"},
		"source: {url: x}\nsource_url: x\n":           {"bridge.yaml:2: source_url: set a second time"},
		"NAME: a\n":                                   {"bridge.yaml:1: NAME: write names in lower case: name"},
		"containers:\n- !logs\n":                      {"bridge.yaml:2: containers: put text that starts with ! in quotes"},
		"topic: {container}\n":                        {"bridge.yaml:1: topic: put text that starts with { in quotes"},
		"containers: [[a]]\n":                         {"want a list of texts without commas"},
		"containers: [\"a,b\"]\n":                     {"want a list of texts without commas"},
		"name: {first: a}\n":                          {"name_first: unknown setting"},
		"- a\n":                                       {"bridge.yaml:1: want settings as name: value"},
		"name: a\n---\nname: b\n":                     {"want one YAML document"},
		"name: [a\n":                                  {"bridge.yaml:1: the YAML is not valid near this line", "close what [ or { opens"},
		"BRIDGE_TOPIC: a\n":                           {"bridge.yaml:1: BRIDGE_TOPIC: write names in lower case: topic"},
		"bridge_topic: a\n":                           {"bridge.yaml:1: bridge_topic: unknown setting; did you mean topic?"},
		"BRIDGE_TOPIC=a\n":                            {"bridge.yaml:1: want settings as name: value, with a space"},
		"bridge: {a: {topic: x}}\n":                   {"bridge.yaml:1: bridge: unknown group of settings; did you mean bridges?"},
		"\nbridge:\n- name: a\n":                      {"bridge.yaml:2: bridge: unknown group of settings; did you mean bridges?"},
		"fleet: {a: {topic: x}}\n":                    {"bridge.yaml:1: fleet: unknown group of settings; want bridges, http, kafka"},
		"topic: a: b\n":                               {"bridge.yaml:1: ", `put a value with ": " in quotes`},
		"kafka:\n\tbrokers: x\n":                      {"bridge.yaml:2: ", "indent with spaces"},
		"topic: @x\n":                                 {"put a value that starts with @, % or ` in quotes"},
		"name: \"a\n":                                 {"close the quotation mark"},
		"name: a\ntopic x\n":                          {"bridge.yaml:2: ", "write each setting as name: value"},
		"topic: {container}-x\n":                      {"put a value that starts with {, [ or"},
		"containers: *\n":                             {"put a value that starts with * or & in quotes"},
		"diff: true\n":                                {"bridge.yaml:1: diff: replaced: list diff"},
		"source_key: hunter2\nsource_key_file: /x\n":  {"BRIDGE_SOURCE_KEY (", "set together with BRIDGE_SOURCE_KEY_FILE"},
	} {
		set(t, map[string]string{"BRIDGE_CONFIG": "", "BRIDGE_SOURCE_URL": "file:///x"})
		settingsFile(t, text)
		_, err := Environ().Load(false)
		if err == nil {
			t.Errorf("%q is accepted", text)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v, want %s", text, err, part)
			}
		}
		if strings.Contains(err.Error(), " yaml: ") {
			t.Errorf("the parser's words: %v", err)
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("a value is shown: %v", err)
		}
	}
	set(t, map[string]string{"BRIDGE_CONFIG": "/nosuch/bridge.yaml"})
	if _, err := Environ().Load(false); err == nil || !strings.Contains(err.Error(), "reading the settings file: stat /nosuch/bridge.yaml") {
		t.Errorf("without the file: %v", err)
	}
	set(t, map[string]string{"BRIDGE_CONFIG": "", "BRIDGE_SOURCE_URL": "file:///x"})
	settingsFile(t, "# nothing\n")
	if _, err := Environ().Load(false); err != nil {
		t.Error(err)
	}
}

// The settings in force, printed as a file, are the same settings; secrets are not in it, but paths of them are.
func TestYAMLRoundTrip(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(secret, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, env := range []map[string]string{
		{"SOURCE_URL": "file:///feed", "KAFKA_BROKERS": "a:1"},
		{"SOURCE_URL": "https://account.example", "SOURCE_AUTH": "shared_key", "SOURCE_KEY_FILE": secret,
			"KAFKA_BROKERS": "ns.servicebus.windows.net", "PRESET": "event_hubs", "KAFKA_COMPRESSION": "gzip",
			"CONTAINERS": "!logs, a, b", "PREFIXES": "null", "TOPIC": "{container}", "SOURCE_ACCOUNT": "5", "NAME": "true", "INSTANCE": "~",
			"OPTIONS": "updated,diff", "COMMIT_INTERVAL": "1500ms", "TXN_BYTES": "1MiB", "TOPIC_SHARED": "true",
			"EXTRA_HEADERS": "a=b: #c,d='e'", "REGISTRY_AUTO_REGISTER": "false", "LOG_LEVEL": "warn"},
	} {
		variables := map[string]string{}
		for name, value := range env {
			variables["BRIDGE_"+name] = value
		}
		set(t, variables)
		c, err := Environ().Load(true)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := c.YAML(&text); err != nil {
			t.Fatal(err)
		}
		set(t, map[string]string{"BRIDGE_CONFIG": ""})
		settingsFile(t, text.String())
		again, err := Environ().Load(true)
		if err != nil {
			t.Fatalf("%v\n%s", err, &text)
		}
		text.Reset()
		if err := c.Env(&text); err != nil {
			t.Fatal(err)
		}
		variables = map[string]string{"BRIDGE_CONFIG": ""}
		for line := range strings.Lines(text.String()) {
			if name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok && line[0] != '#' {
				variables[name] = value
			}
		}
		set(t, variables)
		if inEnv, err := Environ().Load(true); err != nil || !slices.Equal(values(inEnv), values(again)) {
			t.Errorf("%v, %q\n%s", err, values(inEnv), &text)
		}
		for i, want := range c.Effective() {
			have := again.Effective()[i]
			if have.Name == "BRIDGE_INSTANCE" && c.From("INSTANCE") == "default" {
				continue // made of the process id
			}
			if have.Value != want.Value {
				t.Errorf("%s is %q, want %q\n%s", have.Name, have.Value, want.Value, &text)
			}
		}
		if again.SourceKey != c.SourceKey || strings.Contains(text.String(), "hunter2") {
			t.Errorf("the key is %q, in\n%s", string(again.SourceKey), &text)
		}
	}
}

// The file in the reference has settings in it, and nothing else.
func TestExampleFile(t *testing.T) {
	var reference bytes.Buffer
	if err := Markdown(&reference); err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(reference.String(), "```yaml\n")
	example, _, ok := strings.Cut(example, "```")
	set(t, map[string]string{"BRIDGE_CONFIG": ""})
	settingsFile(t, example)
	d, err := Environ().document()
	if err != nil || !ok || len(d.common) < 4 {
		t.Fatalf("%v: %v", d.common, err)
	}
	for _, e := range d.common {
		if problem := misnamed(e.name, e.value, strings.ToLower); problem != "" || e.value == "" {
			t.Errorf("%s: %s", e.name, problem)
		}
	}
}

// values returns all settings but the instance, which is made of the process id.
func values(c *Config) (all []string) {
	for _, e := range c.Effective() {
		if e.Name != "BRIDGE_INSTANCE" {
			all = append(all, e.Name+"="+e.Value)
		}
	}
	return all
}

// The file as it is printed has no secret of the environment, nor what stands for one.
func TestYAMLHidesSecrets(t *testing.T) {
	env := map[string]string{"BRIDGE_SOURCE_URL": "https://user:hunter2@host/path?sig=hunter2"}
	for _, name := range SecretNames() {
		env[name] = "hunter2"
	}
	set(t, env)
	c, _ := Environ().Load(false)
	var text bytes.Buffer
	if err := c.YAML(&text); err != nil || strings.Contains(text.String(), "hunter2") ||
		!strings.Contains(text.String(), "# key_file") {
		t.Errorf("%v\n%s", err, &text)
	}
	if err := c.Env(&text); err != nil || strings.Contains(text.String(), "hunter2") ||
		!strings.Contains(text.String(), "# BRIDGE_SOURCE_KEY_FILE=/path") {
		t.Errorf("%v\n%s", err, &text)
	}
	for line := range strings.Lines(text.String()) {
		if strings.ContainsAny(line, "()") && !strings.HasPrefix(strings.TrimSpace(line), "#") {
			t.Errorf("a setting: %s", line)
		}
	}
}
