//go:build integration

package integration

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"blobfeed/internal/check"
	"blobfeed/internal/testing/feedsim"
)

// scripted runs bridge config --format acls, creates the topics of its commands, and returns their ACLs.
func scripted(t *testing.T, brokers []string, settings []string) (acls []string) {
	t.Helper()
	p := start(t, []string{"config", "--format", "acls"}, settings...)
	if code := p.wait(t, time.Minute); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, p.log)
	}
	admin := kadm.NewClient(client(t, brokers))
	for line := range strings.Lines(p.log.String()) {
		words := strings.Fields(line)
		flags := map[string][]string{}
		for i, word := range words[:len(words)-1] {
			if name, ok := strings.CutPrefix(word, "--"); ok {
				flags[name] = append(flags[name], strings.Trim(words[i+1], "'"))
			}
		}
		switch words[0] {
		case "kafka-topics.sh":
			partitions, err := strconv.Atoi(flags["partitions"][0])
			if err != nil {
				t.Fatal(err)
			}
			with := map[string]*string{}
			for _, setting := range flags["config"] {
				name, value, _ := strings.Cut(setting, "=")
				with[name] = &value
			}
			if _, err := admin.CreateTopic(t.Context(), int32(partitions), -1, with, flags["topic"][0]); err != nil {
				t.Fatal(err)
			}
		case "kafka-acls.sh":
			for _, resource := range []string{"topic", "group", "transactional-id"} {
				for _, name := range flags[resource] {
					for _, operation := range flags["operation"] {
						acls = append(
							acls,
							strings.Join([]string{flags["allow-principal"][0], operation, resource, name}, " "),
						)
					}
				}
			}
		}
	}
	return acls
}

// With the topics and permissions that bridge config prints, and no others, the bridge delivers. Each permission is
// needed: without it bridge check fails, which says that run would not work. Only the one on the id <name>-check is for
// that verb alone.
func TestConfigIsWhatRunNeeds(t *testing.T) {
	t.Parallel()
	s := secureStack(t)
	dir := t.TempDir()
	if err := feedsim.Write(t.Context(), feedsim.Dir(dir), feedsim.Spec{EventsPerSegment: 50, Blobs: 10, Segments: 1,
		Start: time.Now().UTC().Truncate(time.Hour).Add(-3 * time.Hour)}, nil); err != nil {
		t.Fatal(err)
	}
	name := strings.ToLower(t.Name())
	settings := []string{"NAME=" + name, "TOPIC=" + name + ".changes", "EVENTS=all", "SOURCE_URL=" + fileURL(t, dir),
		"TOPIC_CREATE=off", "TOPIC_PARTITIONS=" + strconv.Itoa(partitions), "OFFSETS_LEASES=2", "RESOLVED_TO=topic",
		"ON_ERROR=dead_letter", "KAFKA_BROKERS=" + s.Security.Plain[0], "KAFKA_TLS_ENABLED=true",
		"KAFKA_TLS_CA_FILE=" + s.Security.CAFile, "KAFKA_SASL_MECHANISM=PLAIN", "KAFKA_SASL_USERNAME=plain",
		"KAFKA_SASL_PASSWORD=" + s.Security.PlainPassword}
	acls := scripted(t, s.KafkaBrokers, settings)
	if err := s.Allow(t.Context(), acls...); err != nil {
		t.Fatal(err)
	}
	checked(t, settings, clean)
	runOnce(t, settings...)
	if n := len(read(t, s.KafkaBrokers, name+".changes")); n != 50 {
		t.Errorf("%d records", n)
	}
	for _, acl := range acls {
		if err := s.Disallow(t.Context(), acl); err != nil {
			t.Fatal(err)
		}
		want, status := 1, check.Failed
		if strings.HasSuffix(acl, " transactional-id "+name+"-check") { // run does without it
			want, status = 0, check.Warning
		}
		checked(t, settings, func(code int, found check.Findings) bool {
			return code == want && slices.ContainsFunc(found, func(f check.Finding) bool {
				return f.Status == status && f.Check == "acl"
			})
		})
		if err := s.Allow(t.Context(), acl); err != nil {
			t.Fatal(err)
		}
	}
	checked(t, settings, clean)
}
