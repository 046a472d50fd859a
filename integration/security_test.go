//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"blobfeed/integration/stack"
	"blobfeed/internal/check"
	"blobfeed/internal/testing/feedsim"
)

// secureStack starts brokers that want credentials.
func secureStack(t *testing.T) *stack.Stack {
	t.Helper()
	s, err := stack.Start(t.Context(), stack.Options{Brokers: 1, Secure: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// aclsOf returns the ACLs that docs/security.md says a bridge needs.
func aclsOf(t *testing.T, user, name, topic string) (acls []string) {
	t.Helper()
	text, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	replace := strings.NewReplacer("<topic>", topic, "<name>", name, "`", "")
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(strings.TrimSpace(line), "|"); len(cells) == 6 && strings.HasPrefix(cells[2], " `") {
			for operation := range strings.SplitSeq(cells[1], ",") {
				acls = append(acls, strings.Join(append([]string{"User:" + user},
					strings.Fields(replace.Replace(operation+cells[2]+cells[3]))...), " "))
			}
		}
	}
	if len(acls) != 15 {
		t.Fatalf("found %q in docs/security.md", acls)
	}
	return acls
}

// checked runs bridge check until what it finds pleases: brokers learn of users and ACLs some moments later.
func checked(t *testing.T, settings []string, pleases func(code int, found check.Findings) bool) check.Findings {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		p := start(t, []string{"check", "--output", "json"}, settings...)
		code := p.wait(t, time.Minute)
		var found check.Findings
		for line := range strings.Lines(p.log.String()) {
			var f check.Finding
			if json.Unmarshal([]byte(line), &f) == nil {
				found = append(found, f)
			}
		}
		if pleases(code, found) {
			return found
		}
		if time.Now().After(deadline) {
			t.Fatalf("bridge check: exit code %d\n%s", code, p.log)
		}
	}
}

func clean(code int, found check.Findings) bool { return code == 0 && found.Count(check.Failed) == 0 }

// deliver runs the program over a small feed, counts what came, and returns all settings.
func deliver(t *testing.T, s *stack.Stack, name, topic string, security ...string) (settings []string) {
	t.Helper()
	dir := t.TempDir()
	if err := feedsim.Write(t.Context(), feedsim.Dir(dir), feedsim.Spec{EventsPerSegment: 100, Blobs: 20, Segments: 1},
		nil); err != nil {
		t.Fatal(err)
	}
	settings = append([]string{"NAME=" + name, "TOPIC=" + topic, "EVENTS=all", "SOURCE_URL=" + fileURL(t, dir)},
		security...)
	checked(t, settings, clean)
	runOnce(t, settings...)
	if n := len(read(t, s.KafkaBrokers, topic)); n != 100+partitions {
		t.Errorf("%d records", n)
	}
	return settings
}

// Each way to authenticate delivers, with the ACLs that the manual lists and no others.
func TestSecurity(t *testing.T) {
	t.Parallel()
	s := secureStack(t)
	sec := s.Security
	dir := t.TempDir()
	own, err := sec.Authority.Issue("cert-user", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := own.Write(dir, "client")
	if err != nil {
		t.Fatal(err)
	}
	password := "p w'd="
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id, secret, _ := r.BasicAuth(); id != "oauth-user" || secret != "client-secret" {
			http.Error(w, `{"error":"invalid_client"}`, http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{"access_token":%q,"expires_in":3600}`, unsigned(t, "oauth-user"))
	}))
	defer tokens.Close()
	encrypted := []string{"KAFKA_TLS_ENABLED=true", "KAFKA_TLS_CA_FILE=" + sec.CAFile}
	for user, settings := range map[string][]string{
		"plain": append(slices.Clone(encrypted), "KAFKA_BROKERS="+sec.Plain[0], "KAFKA_SASL_MECHANISM=PLAIN",
			"KAFKA_SASL_USERNAME=plain", "KAFKA_SASL_PASSWORD="+sec.PlainPassword),
		"scram256": append(slices.Clone(encrypted), "KAFKA_BROKERS="+sec.Scram[0], "KAFKA_SASL_MECHANISM=SCRAM-SHA-256",
			"KAFKA_SASL_USERNAME=scram256",
			"KAFKA_SASL_PASSWORD="+password),
		"scram512": append(slices.Clone(encrypted), "KAFKA_BROKERS="+sec.Scram[0], "KAFKA_SASL_MECHANISM=SCRAM-SHA-512",
			"KAFKA_SASL_USERNAME=scram512",
			"KAFKA_SASL_PASSWORD="+password),
		"cert-user": append(slices.Clone(encrypted), "KAFKA_BROKERS="+sec.MTLS[0], "KAFKA_TLS_CERT_FILE="+cert,
			"KAFKA_TLS_KEY_FILE="+key),
		"oauth-user": {"KAFKA_BROKERS=" + sec.OAuth[0], "KAFKA_SASL_MECHANISM=OAUTHBEARER",
			"KAFKA_SASL_TOKENS=" + tokens.URL, "KAFKA_SASL_USERNAME=oauth-user",
			"KAFKA_SASL_PASSWORD=client-secret"},
	} {
		t.Run(user, func(t *testing.T) {
			if strings.HasPrefix(user, "scram") {
				if err := s.SetPassword(t.Context(), user, password); err != nil {
					t.Fatal(err)
				}
			}
			name, topic := names(t, s.KafkaBrokers, 1)
			acls := aclsOf(t, user, name, topic)
			if err := s.Allow(t.Context(), acls...); err != nil {
				t.Fatal(err)
			}
			all := deliver(t, s, name, topic, settings...)
			// Now that the topics exist, nobody need be allowed to create them.
			if err := s.Disallow(t.Context(),
				slices.DeleteFunc(acls, func(acl string) bool {
					return !strings.Contains(acl, " Create ")
				})...); err != nil {
				t.Fatal(err)
			}
			checked(t, all, clean)
			runOnce(t, all...)
		})
	}
}

// The same ACLs suffice to create topics; that they will not keep old history is said.
func TestNewTopics(t *testing.T) {
	t.Parallel()
	s := secureStack(t)
	name, topic := names(t, s.KafkaBrokers, 1)
	topic += ".new"
	if err := s.Allow(t.Context(), aclsOf(t, "plain", name, topic)...); err != nil {
		t.Fatal(err)
	}
	settings := []string{"NAME=" + name, "TOPIC=" + topic, "SOURCE_URL=" + fileURL(t, realFeed), "EVENTS=all",
		"RESOLVED_TO=topic", "ON_ERROR=dead_letter", "KAFKA_BROKERS=" + s.Security.Plain[0],
		"KAFKA_TLS_ENABLED=true", "KAFKA_TLS_CA_FILE=" + s.Security.CAFile, "KAFKA_SASL_MECHANISM=PLAIN",
		"KAFKA_SASL_USERNAME=plain", "KAFKA_SASL_PASSWORD=" + s.Security.PlainPassword}
	checked(t, settings, clean)
	p := start(t, []string{"run", "--once"}, settings...)
	if code := p.wait(t, time.Minute); code != 0 || strings.Contains(p.log.String(), "retrying") ||
		!strings.Contains(p.log.String(), "retention.ms") {
		t.Errorf("exit code %d:\n%s", code, p.log)
	}
	for _, created := range []string{topic, topic + ".resolved", name + ".dlq"} {
		consume(t, s.KafkaBrokers, created).drain(t)
	}
}

// Of the ACLs in the manual each is needed: bridge check names the one that is missing, and the command that adds it.
func TestMissingACLs(t *testing.T) {
	t.Parallel()
	s := secureStack(t)
	dir := t.TempDir()
	if err := feedsim.Write(t.Context(), feedsim.Dir(dir), feedsim.Spec{EventsPerSegment: 10, Blobs: 2, Segments: 1},
		nil); err != nil {
		t.Fatal(err)
	}
	name, topic := names(t, s.KafkaBrokers, 1)
	settings := []string{"NAME=" + name, "TOPIC=" + topic, "SOURCE_URL=" + fileURL(t, dir), "ON_ERROR=dead_letter",
		"RESOLVED_TO=topic", "KAFKA_BROKERS=" + s.Security.Plain[0],
		"KAFKA_TLS_ENABLED=true", "KAFKA_TLS_CA_FILE=" + s.Security.CAFile, "KAFKA_SASL_MECHANISM=PLAIN",
		"KAFKA_SASL_USERNAME=plain", "KAFKA_SASL_PASSWORD=" + s.Security.PlainPassword}
	acls := aclsOf(t, "plain", name, topic)
	// None is there, and brokers do not even tell whether the topics exist: all are named.
	checked(t, settings, func(code int, found check.Findings) bool {
		return code == 1 && found.Count(check.Failed) == len(acls)
	})
	if err := s.Allow(t.Context(), acls...); err != nil {
		t.Fatal(err)
	}
	checked(t, settings, clean)
	for _, acl := range acls {
		words := strings.Fields(acl) // principal, operation, kind, name
		if words[1] == "Create" && words[3] == topic {
			continue // it exists
		}
		if err := s.Disallow(t.Context(), acl); err != nil {
			t.Fatal(err)
		}
		missing := func(f check.Finding) bool {
			return f.Status == check.Failed && strings.Contains(f.Do,
				"--allow-principal User:plain --operation "+words[1]+" --"+words[2]+" "+strings.TrimSuffix(words[3],
					"*"))
		}
		found := checked(t, settings, func(code int, found check.Findings) bool {
			return code == 1 && slices.ContainsFunc(found, missing)
		})
		if n := found.Count(check.Failed); n != 1 {
			t.Errorf("without %q %d checks failed: %v", acl, n, found)
		}
		if err := s.Allow(t.Context(), acl); err != nil {
			t.Fatal(err)
		}
		checked(t, settings, clean)
	}
}

// What can be wrong about a connection is told in words, with the setting to look at.
func TestCheckNamesTheTrouble(t *testing.T) {
	t.Parallel()
	s := secureStack(t)
	sec := s.Security
	encrypted := []string{"KAFKA_TLS_ENABLED=true", "KAFKA_TLS_CA_FILE=" + sec.CAFile}
	for name, tc := range map[string]struct {
		settings []string
		says     string
	}{
		"nobody listens": {[]string{"KAFKA_BROKERS=127.0.0.1:1"}, "BRIDGE_KAFKA_BROKERS"},
		"no encryption":  {[]string{"KAFKA_BROKERS=" + sec.MTLS[0]}, "BRIDGE_KAFKA_TLS_ENABLED=true"},
		"too much encryption": {append(slices.Clone(encrypted), "KAFKA_BROKERS="+s.KafkaBrokers[0]),
			"BRIDGE_KAFKA_TLS_ENABLED=false"},
		"unknown authority": {[]string{"KAFKA_BROKERS=" + sec.MTLS[0], "KAFKA_TLS_ENABLED=true"},
			"BRIDGE_KAFKA_TLS_CA_FILE"},
		"another name": {append(slices.Clone(encrypted), "KAFKA_BROKERS="+sec.MTLS[0],
			"KAFKA_TLS_SERVER_NAME=x.example"), "BRIDGE_KAFKA_TLS_SERVER_NAME"},
		"no client certificate": {append(slices.Clone(encrypted), "KAFKA_BROKERS="+sec.MTLS[0]),
			"BRIDGE_KAFKA_TLS_CERT_FILE"},
		"no credentials": {append(slices.Clone(encrypted), "KAFKA_BROKERS="+sec.Plain[0]),
			"BRIDGE_KAFKA_SASL_MECHANISM"},
		"wrong password": {append(slices.Clone(encrypted), "KAFKA_BROKERS="+sec.Plain[0], "KAFKA_SASL_MECHANISM=PLAIN",
			"KAFKA_SASL_USERNAME=plain",
			"KAFKA_SASL_PASSWORD=wrong-password"), "BRIDGE_KAFKA_SASL_PASSWORD"},
		"another mechanism": {append(slices.Clone(encrypted), "KAFKA_BROKERS="+sec.Plain[0],
			"KAFKA_SASL_MECHANISM=SCRAM-SHA-512", "KAFKA_SASL_USERNAME=plain",
			"KAFKA_SASL_PASSWORD=wrong-password"), "BRIDGE_KAFKA_SASL_MECHANISM"},
		"no OAuth server": {[]string{"KAFKA_BROKERS=" + sec.OAuth[0], "KAFKA_SASL_MECHANISM=OAUTHBEARER",
			"KAFKA_SASL_TOKENS=http://127.0.0.1:1/token",
			"KAFKA_SASL_USERNAME=x", "KAFKA_SASL_PASSWORD=client-secret"}, "BRIDGE_KAFKA_SASL_TOKENS"},
	} {
		t.Run(name, func(t *testing.T) {
			found := checked(t, append(tc.settings, "SOURCE_URL="+fileURL(t, realFeed)),
				func(int, check.Findings) bool { return true })
			if !slices.ContainsFunc(found, func(f check.Finding) bool {
				return f.Status == check.Failed && strings.Contains(f.Do, tc.says)
			}) {
				t.Errorf("%v", found)
			}
		})
	}
}
