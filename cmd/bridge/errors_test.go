package main

import (
	"context"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// mistake makes one, and returns what to call then.
type mistake func(*testing.T) (args []string)

// Each message of docs/errors.md is what the program prints after the mistake that the page names.
func TestErrorsOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?) \\|").FindAllStringSubmatch(string(page), -1) {
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			listed = append(listed, m[1])
		}
	}
	made := map[string]mistake{}
	for _, some := range []map[string]mistake{ofSettings, ofFeeds, ofKafka, ofTopics} {
		maps.Copy(made, some)
	}
	for message := range made {
		if !slices.Contains(listed, message) {
			t.Errorf("the page does not list %q", message)
		}
	}
	for _, message := range listed {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			if made[message] == nil {
				t.Fatal("nothing provokes it")
			}
			provoke(t, message, made[message](t))
		})
	}
}

// provoke calls the program until it says so, or ends.
func provoke(t *testing.T, message string, args []string) {
	t.Helper()
	pattern := regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(strings.Trim(message, "… ")), "…", ".*"))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out safeBuffer
	ended := make(chan int, 1)
	go func() { ended <- execute(ctx, environ(t), args, &out, &out) }()
	for deadline := time.After(40 * time.Second); ; {
		select {
		case code := <-ended:
			if code == exitOK || !pattern.MatchString(out.String()) {
				t.Errorf("bridge %s: exit code %d, want %q:\n%s", args, code, message, out.String())
			}
			return
		case <-time.After(20 * time.Millisecond): // between two looks
			if pattern.MatchString(out.String()) { // run retries what can pass
				stop()
				<-ended
				return
			}
		case <-deadline:
			t.Fatalf("bridge %s: want %q:\n%s", args, message, out.String())
		}
	}
}

var runOnce = []string{"run", "--once"}

// set returns a mistake that is in settings alone: name=value, separated by spaces.
func set(settings string, args ...string) mistake {
	return func(t *testing.T) []string {
		t.Helper()
		setAll(t, map[string]string{"SOURCE_URL": "file://" + abs(t, "../../testdata/real-2020"),
			"KAFKA_BROKERS": "127.0.0.1:1", "HTTP_ADDR": "off"})
		for _, s := range strings.Fields(settings) {
			name, value, _ := strings.Cut(s, "=")
			setAll(t, map[string]string{name: value})
		}
		return args
	}
}

// inFile returns a mistake in the settings file.
func inFile(text string, args ...string) mistake {
	return func(t *testing.T) []string {
		t.Helper()
		return append(args, "--config", fleetFile(t, text))
	}
}

var ofSettings = map[string]mistake{
	"unknown setting; did you mean …?":           set("TOPICS=x", "config"),
	"unknown group of settings; did you mean …?": inFile("bridge: {a: {topic: a}}", "run"),
	"the YAML is not valid near this line":       inFile("kafka:\n\tbrokers: x:1", "run"),
	"has many bridges: set BRIDGE_NAME to one of …": inFile("kafka: {brokers: x:1}\n"+
		"bridges: {a: {topic: a}, b: {topic: b}}", "status"),
	"required: host:port of some brokers":          set("KAFKA_BROKERS=", "run"),
	"want one of …":                                set("DELIVERY=once", "config"),
	"has no effect without …":                      set("KAFKA_SASL_USERNAME=user", "run"),
	"replaced: list …":                             set("UPDATED=false", "config"),
	"want https://<account>.blob.core.windows.net": set("SOURCE_URL=/data/feed", "check"),
	"set BRIDGE_HTTP_ADDR to a free address": func(t *testing.T) []string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return set("HTTP_ADDR="+l.Addr().String(), "run")(t)
	},
	"… is only usable with …":   set("ENVELOPE=key_only OPTIONS=diff", "run"),
	"… is not supported with …": set("ENVELOPE=row FORMAT=avro REGISTRY_URL=http://r", "run"),
	"but records were written with …": func(t *testing.T) []string {
		deliveredReal(t)
		setenv(t, "BRIDGE_ENVELOPE", "bare")
		return runOnce
	},
}
