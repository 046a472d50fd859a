package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"blobfeed/internal/testing/fakebroker"
)

// status --all and check --all cover every bridge of the file, and fail if one is bad.
func TestAll(t *testing.T) {
	c := fakebroker.New(t)
	file := fleetOf(t, c, "http_addr: '127.0.0.1:0'")
	code, out, stderr := call(t, "status", "--all", "--config", file)
	if code != exitFailed || strings.Count(out, "unknown: ") != 3 ||
		!strings.Contains(stderr, "3 of 3 bridges have no readable state") {
		t.Errorf("before the first run: exit code %d: %s%s", code, out, stderr)
	}
	base, _, stop := background(t, file)
	for _, name := range []string{"photos", "sim"} {
		await(t, name, func() bool { return listed(t, base, name).Verdict.Code == "up_to_date" })
	}
	code, out, _ = call(t, "status", "--all", "--config", file, "--output", "json")
	if code != exitOK || strings.Count(out, "\n") != 3 ||
		!strings.Contains(out, `{"name":"photos","now":`) {
		t.Errorf("exit code %d: %s", code, out)
	}
	code, out, stderr = call(t, "status", "--all", "--check", "--config", file)
	if code != exitFailed || !strings.HasPrefix(out, "bridge  last event  verdict\n"+
		"broken  -           degraded: not running now, although instance ") ||
		!strings.Contains(out, "runs other bridges of the file: no instance has delivered anything yet\n"+
			"                    -> look at the page or the log of that instance") ||
		!regexp.MustCompile(`\nphotos  [\d,]+ days +up to date\nsim     [\d,]+ days +up to date\n`).MatchString(out) ||
		!strings.Contains(stderr, "1 of 3 bridges are degraded or not running") {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
	setenv(t, "BRIDGE_NAME", "broken")
	if code, out, stderr = call(t, "status", "--config", file); code != exitOK ||
		!strings.HasPrefix(out, "degraded: not running now, although instance ") {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
	setenv(t, "BRIDGE_NAME", "")
	// A bridge whose settings are invalid hides nothing, neither of itself.
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	invalid := fleetFile(t, strings.Replace(string(text), "events: all}", "events: all, poll_interval: never}", 1))
	const unfit = "bridges have settings in the file that are rejected"
	code, out, stderr = call(t, "status", "--all", "--config", invalid)
	if code != exitSettings || !strings.Contains(stderr, "1 of 3 "+unfit) || !regexp.MustCompile(
		`\nphotos  [\d,]+ days +up to date\n +its settings in the file are rejected: BRIDGE_POLL_INTERVAL.*\n`+
			`sim     [\d,]+ days +up to date\n`,
	).MatchString(out) {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
	code, out, stderr = call(t, "check", "--all", "--config", invalid)
	if code != exitSettings || !strings.Contains(stderr, "1 of 3 bridges have invalid settings") || !regexp.MustCompile(
		`bridge photos\nfailed   settings  BRIDGE_POLL_INTERVAL.*\nbridge sim\nok       reach `).MatchString(out) {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
	none := fleetFile(t, strings.Replace(string(text), "poll_interval: 50ms", "poll_interval: never", 1))
	code, out, stderr = call(t, "status", "--all", "--config", none)
	if code != exitSettings || !strings.Contains(stderr, "3 of 3 "+unfit) || strings.Count(out, " up to date\n") != 2 {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
	stop()
	code, out, stderr = call(t, "status", "--all", "--config", file)
	if code != exitOK || strings.Count(out, "  nobody is running: ") != 3 ||
		strings.Count(out, "-> start an instance with bridge run\n") != 3 {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
	code, out, stderr = call(t, "check", "--all", "--config", file)
	_, broken, ok := strings.Cut(out, "bridge broken\n")
	if broken, _, _ = strings.Cut(broken, "bridge photos\n"); code != exitFailed || !ok ||
		!strings.Contains(stderr, "1 of 3 bridges would not work") || !strings.Contains(broken, "failed") {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
	code, out, _ = call(t, "check", "--all", "--config", file, "--output", "json")
	if code != exitFailed || !strings.Contains(out, `{"bridge":"sim","check":"reach","status":"ok",`) ||
		strings.Count(out, `"check":"http"`) != 1 { // the process has one address
		t.Errorf("exit code %d: %s", code, out)
	}
	code, _, stderr = call(t, "status", "--all", "--watch", "1s")
	if code != exitUsage || !strings.Contains(stderr, "remove --watch") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// check --all warns of a signature that bridges of several accounts have, as from the environment.
func TestCheckAllOfASharedSignature(t *testing.T) {
	t.Parallel()
	setenv(t, "BRIDGE_SOURCE_SAS", "sv=2026&sp=rl&sig=planted-signature")
	setenv(t, "BRIDGE_SOURCE_AUTH", "sas")
	storage := httptest.NewServer(http.NotFoundHandler())
	defer storage.Close()
	file := fleetFile(t, strings.ReplaceAll(`
kafka_brokers: ["`+fakebroker.New(t).ListenAddrs()[0]+`"]
http_addr: "off"
topic: "{account}"
bridges:
  own: {source: {url: "STORAGE/own", sas: "sv=2026&sp=rl&sig=another-signature"}}
  photos: {source_url: "STORAGE/photos"}
  music: {source_url: "STORAGE/music"}
  again: {source_url: "STORAGE/music", topic: again}
`, "STORAGE", storage.URL))
	_, out, stderr := call(t, "check", "--all", "--config", file)
	_, own, _ := strings.Cut(out, "bridge own\n")
	own, _, _ = strings.Cut(own, "bridge photos\n")
	const says = "bridges of several accounts have the same signature (environment)"
	if strings.Count(out, says) != 3 || strings.Contains(own, says) || strings.Contains(out+stderr, "planted") {
		t.Errorf("%s%s", out, stderr)
	}
}

// With --all, a settings file that cannot be read gets the error that it gets without, and one without bridges another.
func TestAllWithoutBridges(t *testing.T) {
	t.Parallel()
	written := func(text string) string {
		path := filepath.Join(t.TempDir(), "fleet.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	missing := filepath.Join(t.TempDir(), "fleet.yaml")
	for _, tc := range []struct {
		name, path, chosen, want string
		same                     bool // as without --all
	}{
		{"a tab", written("bridges:\n\ta: {}\n"), "", "fleet.yaml:2: ", true},
		{"a typo", written("bridge:\n  a: {topic: b}\n"), "", "did you mean bridges?", true},
		{"missing", missing, "", "reading the settings file: ", true},
		{"missing and chosen", missing, "a", "reading the settings file: ", true},
		{"no bridges", written("kafka_brokers: x:1\n"), "", "fleet.yaml has no bridges: list them under", false},
		{"chosen", written("bridges: {a: {}}\n"), "a", "BRIDGE_NAME chooses one bridge of ", false},
		{"none", "", "", "no settings file is named: name one that has bridges with --config", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			setenv(t, "BRIDGE_CONFIG", tc.path)
			setenv(t, "BRIDGE_NAME", tc.chosen)
			for _, verb := range []string{"status", "check"} {
				code, _, stderr := call(t, verb, "--all")
				if code != exitSettings || !strings.Contains(stderr, tc.want) {
					t.Errorf("%s: exit code %d: %s, want %s", verb, code, stderr, tc.want)
				}
				if _, _, alone := call(t, verb); tc.same && stderr != alone {
					t.Errorf("%s: %s, want %s", verb, stderr, alone)
				}
			}
		})
	}
}
