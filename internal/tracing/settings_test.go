package tracing

import (
	"log/slog"
	"os"
	"strings"
	"testing"
)

// environment clears what the machine has set of OpenTelemetry, and sets what the test wants.
func environment(t *testing.T, set string) {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "") // to have it back in the end
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, pair := range strings.Fields(set) {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv("OTEL_"+name, value)
	}
}

func TestCollector(t *testing.T) {
	for set, want := range map[string]string{
		"":                    "",
		"SERVICE_NAME=photos": "",
		"EXPORTER_OTLP_ENDPOINT=http://collector:4318":                                               "collector:4318",
		"EXPORTER_OTLP_ENDPOINT=http://all:1 EXPORTER_OTLP_TRACES_ENDPOINT=https://traces/v1/traces": "traces",
		"EXPORTER_OTLP_ENDPOINT=http://all:1 TRACES_EXPORTER=none":                                   "",
		"EXPORTER_OTLP_ENDPOINT=http://all:1 SDK_DISABLED=TRUE TRACES_EXPORTER=console":              "",
		"EXPORTER_OTLP_ENDPOINT=http://all:1 SDK_DISABLED=false":                                     "all:1",
		"TRACES_EXPORTER=otlp": "localhost:4318",
		"TRACES_EXPORTER=otlp EXPORTER_OTLP_PROTOCOL=grpc EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf": "localhost:4318",
		"TRACES_EXPORTER=console":                                                                                  "error: otlp and none are possible",
		"TRACES_EXPORTER=otlp EXPORTER_OTLP_PROTOCOL=grpc":                                                         "error: only http/protobuf",
		"EXPORTER_OTLP_ENDPOINT=http://all:1 EXPORTER_OTLP_TRACES_PROTOCOL=http/json":                              "error: OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
		"EXPORTER_OTLP_ENDPOINT=collector:4317":                                                                    "error: OTEL_EXPORTER_OTLP_ENDPOINT: want a URL",
		"EXPORTER_OTLP_ENDPOINT=http://all:1 EXPORTER_OTLP_TRACES_ENDPOINT=http://u:planted@%zz TRACES_EXPORTER=a": "error: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
	} {
		t.Run(set, func(t *testing.T) {
			environment(t, set)
			host, err := collector()
			says, fails := strings.CutPrefix(want, "error: ")
			if fails != (err != nil) || !fails && host != want ||
				fails && (!strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "planted")) {
				t.Errorf("%q, %v; want %q", host, err, want)
			}
		})
	}
}

// What the SDK would only write to the log, or leave out, is an error of the settings, and says nothing that
// may be a secret.
func TestProblems(t *testing.T) {
	for set, want := range map[string]string{
		"TRACES_SAMPLER=sometimes":                               "unsupported sampler: sometimes",
		"TRACES_SAMPLER=traceidratio TRACES_SAMPLER_ARG=2":       "greater than 1.0",
		"EXPORTER_OTLP_HEADERS=planted":                          "parse headers",
		"EXPORTER_OTLP_HEADERS=key=planted%zz":                   "escape header value",
		"EXPORTER_OTLP_TIMEOUT=10s":                              "parse duration",
		"EXPORTER_OTLP_CERTIFICATE=/no/such/file":                "read tls ca cert file",
		"RESOURCE_ATTRIBUTES=nothing":                            "OTEL_RESOURCE_ATTRIBUTES",
		"TRACES_SAMPLER=always_off EXPORTER_OTLP_HEADERS=k=v%20": "",
	} {
		t.Run(set, func(t *testing.T) {
			environment(t, set+" TRACES_EXPORTER=otlp")
			traces, err := Start(t.Context(), Info{}, slog.New(slog.DiscardHandler))
			if traces != nil {
				traces.Stop()
			}
			if (err == nil) != (want == "") || (err == nil) != (traces != nil) ||
				err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "planted")) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

// Nobody asks for traces: there are none.
func TestOff(t *testing.T) {
	environment(t, "")
	if traces, err := Start(t.Context(), Info{}, nil); traces != nil || err != nil {
		t.Error(traces, err)
	}
}
