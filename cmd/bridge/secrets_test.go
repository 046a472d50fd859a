package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Whatever the verbs print, on either stream, at any level, and however the storage service, the brokers, the
// registry and the OAuth server refuse: no secret is in it, in no form.
func TestSecretsStaySecret(t *testing.T) {
	t.Parallel()
	p, refusing, _, unkind := plantAll(t)
	setAll(
		t,
		map[string]string{
			"SOURCE_URL":          refusing + "/account",
			"SOURCE_ACCOUNT":      "account",
			"KAFKA_BROKERS":       unkind,
			"KAFKA_SASL_USERNAME": "bridge",
			"FORMAT":              "avro",
			"REGISTRY_URL":        refusing,
			"REGISTRY_USERNAME":   "bridge",
			"LOG_LEVEL":           "debug",
			"HTTP_ADDR":           "off",
		},
	)
	for _, way := range []struct {
		settings         map[string]string
		source, kafka    string // what check says of them
		reg, dump, start string
	}{
		{map[string]string{"SOURCE_AUTH": "sas", "KAFKA_SASL_MECHANISM": "PLAIN", "LOG_FORMAT": "json"},
			"answered 403", "SASL_AUTHENTICATION_FAILED", "who are you", "answered 403", "SASL"},
		{map[string]string{"SOURCE_AUTH": "shared_key", "KAFKA_SASL_MECHANISM": "SCRAM-SHA-512", "LOG_FORMAT": "text"},
			"answered 403", "SASL_AUTHENTICATION_FAILED", "who are you", "answered 403", "SASL"},
		{map[string]string{"SOURCE_AUTH": "connection_string", "KAFKA_SASL_MECHANISM": "OAUTHBEARER",
			"KAFKA_SASL_TOKENS": refusing + "/token", "KAFKA_SASL_USERNAME": "id",
			"REGISTRY_USERNAME": "", "REGISTRY_PASSWORD": p.plant("REGISTRY_TOKEN")},
			"answered 403", "invalid_client", "who are you", "answered 403", "invalid_client"},
	} {
		setAll(t, way.settings)
		verb := func(args string, says ...string) {
			t.Helper()
			stdout, stderr := callFor(t, time.Second, strings.Fields(args)...)
			for _, text := range says {
				p.absent(t, fmt.Sprintf("bridge %s, %v", args, way.settings), stdout+stderr, text)
			}
		}
		for _, shape := range []string{"text", "json"} {
			verb("config --output "+shape, "(set)")
			verb("check --output "+shape, way.source, way.kafka, way.reg)
		}
		verb("config --output env", "BRIDGE_SOURCE_SAS_FILE")
		for _, format := range []string{"acls", "strimzi"} {
			verb("config --format "+format, "blobfeed")
		}
		verb("dump", way.dump)
		verb("tail --from earliest", way.dump)
		verb("run --once", way.start)
		verb("run --help", "BRIDGE_KAFKA_SASL_PASSWORD")
		verb("status", way.kafka)
	}
}

// What is pasted where it does not belong is not shown either: by no verb, neither as a setting nor in an error.
func TestSecretsInWrongPlaces(t *testing.T) {
	t.Parallel()
	setAll(
		t,
		map[string]string{
			"SOURCE_URL":    "file://" + abs(t, "../../testdata/real-2020"),
			"KAFKA_BROKERS": "127.0.0.1:1",
			"LOG_LEVEL":     "debug",
			"HTTP_ADDR":     "off",
		},
	)
	var p planted
	secret := p.plant("WRONG")
	p = append(p, "planted") // in URLs that can't be parsed
	escaped := url.QueryEscape(secret)
	key := "AccountName=account;AccountKey=" + secret + ";EndpointSuffix=core.windows.net"
	for _, wrong := range []map[string]string{
		{"SOURCE_URL": "https://user:" + escaped + "@account.blob.core.windows.net"},
		{"SOURCE_URL": "https://user:planted%@account.blob.core.windows.net"},
		{"SOURCE_URL": "https://user:pl/planted@account.blob.core.windows.net"},
		{"SOURCE_URL": "https://account.blob.core.windows.net?sv=2024&sig=" + escaped},
		{"SOURCE_URL": "https://account.blob.core.windows.net/%?sv=2024&sig=planted"},
		{"SOURCE_URL": "DefaultEndpointsProtocol=https;" + key},
		{"SOURCE_URL": "BlobEndpoint=https://account.blob.core.windows.net/;SharedAccessSignature=sv=2024&sig=" +
			escaped},
		{"SOURCE_URL": "file://user:planted@host/feed"},
		{"SOURCE_AUTH": "connection_string", "SOURCE_URL": "", "SOURCE_CONNECTION_STRING": key},
		{"SOURCE_AUTH": "connection_string", "SOURCE_URL": "",
			"SOURCE_CONNECTION_STRING": "BlobEndpoint=http://\x7f;" + key},
		{"SOURCE_AUTH": "connection_string", "SOURCE_URL": "", "SOURCE_CONNECTION_STRING": "planted"},
		{"SOURCE_AUTH": "shared_key", "SOURCE_URL": "https://account.blob.core.windows.net", "SOURCE_KEY": "planted%"},
		{"SOURCE_AUTH": key},
		{"SOURCE_AUTH": "client_secret", "SOURCE_URL": "https://account.blob.core.windows.net",
			"SOURCE_CLIENT_SECRET": secret},
		{"KAFKA_SASL_MECHANISM": "OAUTHBEARER", "KAFKA_SASL_TOKENS": secret},
		{"KAFKA_BROKERS": "user:" + secret + "@127.0.0.1:1"},
		{"KAFKA_BROKERS": "sasl_ssl://user:" + escaped + "@127.0.0.1:1"},
		{"KAFKA_BROKERS": "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=root;SharedAccessKey=" +
			secret},
		{"KAFKA_SASL_MECHANISM": "OAUTHBEARER", "KAFKA_SASL_USERNAME": "id", "KAFKA_SASL_PASSWORD": secret,
			"KAFKA_SASL_TOKENS": "http://user:" + escaped + "@127.0.0.1:1/token?x=" + escaped},
		{"KAFKA_SASL_MECHANISM": "OAUTHBEARER", "KAFKA_SASL_USERNAME": "id", "KAFKA_SASL_PASSWORD": secret,
			"KAFKA_SASL_TOKENS": "https://user:planted%@127.0.0.1:1/token"},
		{"FORMAT": "avro", "REGISTRY_URL": "http://user:" + escaped + "@127.0.0.1:1"},
		{"FORMAT": "avro", "REGISTRY_URL": "http://127.0.0.1:1,http://user:planted%@127.0.0.1:1"},
		{"FORMAT": "avro", "REGISTRY_URL": "http://127.0.0.1:1/?token=" + escaped},
		{"FORMAT": "avro", "REGISTRY_URL": "user:" + secret + "@127.0.0.1:1"},
	} {
		t.Run("", func(t *testing.T) {
			setAll(t, wrong)
			for args, says := range map[string]string{
				"config": "BRIDGE_KAFKA_BROKERS", "check": "", "dump": "", "run --once": "", "status": "bridge: ",
				"config --output env": "BRIDGE_KAFKA_BROKERS", "config --format acls": "", "tail --once": "",
			} {
				stdout, stderr := callFor(t, 300*time.Millisecond, strings.Fields(args)...)
				p.absent(t, fmt.Sprintf("bridge %s, %v", args, wrong), stdout+stderr, says)
			}
		})
	}
}

// serving finds the address in a log.
var serving = regexp.MustCompile(`"serving HTTP","address":"([^"]+)"`)

// An instance that runs, be it ready or in whatever trouble, shows no secret on any of its pages, nor in its log.
func TestRunningInstanceShowsNoSecret(t *testing.T) {
	t.Parallel()
	p, refusing, welcome, unkind := plantAll(t)
	feed := "file://" + abs(t, "../../testdata/real-2020")
	setAll(
		t,
		map[string]string{
			"SOURCE_URL":           refusing + "/account",
			"SOURCE_ACCOUNT":       "account",
			"SOURCE_AUTH":          "sas",
			"KAFKA_BROKERS":        welcome,
			"KAFKA_SASL_USERNAME":  "bridge",
			"KAFKA_SASL_MECHANISM": "PLAIN",
			"REGISTRY_URL":         refusing,
			"REGISTRY_USERNAME":    "bridge",
			"LOG_LEVEL":            "debug",
			"LOG_FORMAT":           "json",
			"HTTP_ADDR":            "127.0.0.1:0",
			"OFFSETS_LEASES":       "2",
			"TOPIC_CREATE":         "explicit",
		},
	)
	for name, way := range map[string]struct {
		settings map[string]string
		says     string // the status
		counts   string // the metrics
	}{
		"all delivered":   {map[string]string{"SOURCE_URL": feed}, `"segments":10,`, "blobfeed_ready 1"},
		"storage refuses": {nil, "answered 403", `blobfeed_azure_requests_total{op="read",status="403"}`},
		"brokers refuse": {map[string]string{"SOURCE_URL": feed, "KAFKA_BROKERS": unkind},
			"SASL_AUTHENTICATION_FAILED", "blobfeed_ready 0"},
		"no token": {map[string]string{"SOURCE_URL": feed, "KAFKA_BROKERS": unkind, "KAFKA_SASL_USERNAME": "id",
			"KAFKA_SASL_MECHANISM": "OAUTHBEARER", "KAFKA_SASL_TOKENS": refusing + "/token"},
			"invalid_client", "blobfeed_ready 0"},
		"registry refuses": {map[string]string{"SOURCE_URL": feed, "FORMAT": "avro"}, "who are you",
			`blobfeed_schema_registry_requests_total{op="register",status="401"}`},
	} {
		t.Run(name, func(t *testing.T) {
			id := strings.ReplaceAll(name, " ", "-")
			setAll(t, map[string]string{"NAME": id, "TOPIC": id + "-changes"})
			setAll(t, way.settings)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var log safeBuffer
			ended := make(chan int, 1)
			go func() { ended <- execute(ctx, environ(t), []string{"run"}, &log, &log) }()
			get := func(path string) string {
				at := serving.FindStringSubmatch(log.String())
				if at == nil {
					return ""
				}
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at[1]+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.SetBasicAuth("", environ(t)["BRIDGE_HTTP_TOKEN"])
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				return string(body)
			}
			for !strings.Contains(get("/status"), way.says) {
				select {
				case <-ctx.Done():
					t.Fatalf("the status never says %q:\n%s\n%s", way.says, get("/status"), log.String())
				case <-time.After(10 * time.Millisecond):
				}
			}
			for path, says := range map[string]string{
				"/status": way.says, "/readyz": "", "/healthz": "ok", "/metrics": way.counts, "/": "<html",
			} {
				p.absent(t, path, get(path), says)
			}
			cancel()
			<-ended
			p.absent(t, "the log", log.String(), `"msg":"starting"`)
		})
	}
}
