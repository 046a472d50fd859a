package deploy

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/testing/fakebroker"
)

// A registry's schema, with a record of a few bytes that somebody wrote to the topic, does not end verify but with a
// verdict, in little memory and time.
func TestHostileSchema(t *testing.T) {
	t.Parallel()
	const field = `{"type":"record","name":"r","fields":[{"name":"f","type":`
	const level = `{"type":"array","doc":"................................................","items":`
	for name, c := range map[string]struct{ schema, value string }{
		"itself":       {field + `"r"}]}`, ""},
		"itself often": {field + `{"type":"array","items":"r"}}]}`, strings.Repeat("\x02", 400_000)},
		"nulls":        {field + `{"type":"array","items":"null"}}]}`, "\xfe\xff\xff\xff\x0f\x00"},
		"nested":       {strings.Repeat(level, 9_000) + `"int"` + strings.Repeat("}", 9_000), "\x02"},
	} {
		t.Run(name, func(t *testing.T) {
			registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_ = json.NewEncoder(w).Encode(map[string]string{"schema": c.schema}) // fails if the client is gone
			}))
			defer registry.Close()
			brokers := fakebroker.New(t)
			if _, err := fakebroker.Admin(t, brokers).CreateTopic(t.Context(), 1, 1, nil, "blob-changes"); err != nil {
				t.Fatal(err)
			}
			framed := []byte("\x00\x00\x00\x00\x01" + c.value)
			record := &kgo.Record{Topic: "blob-changes", Key: framed, Value: framed}
			if err := fakebroker.Client(t, brokers).ProduceSync(t.Context(), record).FirstErr(); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), program, "verify", "--topic", "blob-changes")
			cmd.Env = append(os.Environ(), "BRIDGE_FORMAT=avro", "BRIDGE_REGISTRY_URL="+registry.URL,
				"BRIDGE_KAFKA_BROKERS="+brokers.ListenAddrs()[0], "BRIDGE_SOURCE_URL=file:///nowhere")
			began := time.Now()
			log, peak, err := measured(t, cmd)
			took := time.Since(began)
			t.Logf("%s, a peak of %d MiB", took, peak>>20)
			code := cmd.ProcessState.ExitCode()
			if code != 1 && code != 4 || took > 20*time.Second || peak > attackLimit {
				t.Errorf("%v after %s, a peak of %d MiB:\n%.3000s", err, took, peak>>20, log)
			}
		})
	}
}
