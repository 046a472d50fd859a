package config

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"blobfeed/source/azure"
)

var topicName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,240}$`)

// validate checks what envconfig can't, and fills defaults that depend on the machine.
func (c *Config) validate(feed, kafka bool) (problems []error) {
	bad := func(name, format string, args ...any) {
		problems = append(problems, fmt.Errorf(Prefix+"_"+name+": "+format, args...))
	}
	oneOf := func(name, have string, want ...string) {
		if !slices.Contains(want, have) {
			bad(name, "want one of %s", strings.Join(want, ", "))
		}
	}
	atLeast := func(name string, have, least time.Duration) {
		if have < least {
			bad(name, "want at least %s", least)
		}
	}
	if feed && c.SourceURL == "" && c.SourceConnectionString == "" {
		bad("SOURCE_URL", "required: https://<account>.blob.core.windows.net, or file:///<directory>")
	}
	c.KafkaBrokers = slices.DeleteFunc(c.KafkaBrokers, func(s string) bool { return strings.TrimSpace(s) == "" })
	if kafka && len(c.KafkaBrokers) == 0 {
		bad("KAFKA_BROKERS", "required: host:port of some brokers, comma separated")
	}
	if slices.ContainsFunc(c.KafkaBrokers, func(s string) bool { return strings.ContainsAny(s, "/@=;") }) {
		bad("KAFKA_BROKERS", "want host:port, comma separated: no scheme, user or connection string")
	}
	if !topicName.MatchString(c.Name) {
		bad("NAME", "want letters, digits, '.', '_' and '-' only: it names a topic")
	}
	if topics, err := c.Topics(""); err != nil {
		bad("TOPIC", "%w", err)
	} else if name, ok := topics.Constant(); ok && (name == c.Name+".offsets" || name == c.DeadLetterTopic()) {
		bad("TOPIC", "%s is a topic of the bridge's own", name)
	}
	if n := c.longestTopic(); n > maxTopic {
		bad("TOPIC", "names of up to %d bytes, and a topic has %d", n, maxTopic)
	}
	problems = append(problems, c.validateOutput(feed && kafka)...)
	oneOf("SOURCE_AUTH", c.SourceAuth, azure.Auths...)
	if !slices.Contains(presets, c.KafkaPreset) {
		bad("KAFKA_PRESET", "want one of %s", presetNames())
	}
	if kafka || len(c.KafkaBrokers) > 0 {
		c.validateSecurity(bad)
	}
	oneOf("KAFKA_COMPRESSION", c.KafkaCompression, "none", "snappy", "lz4", "zstd", "gzip")
	oneOf("DELIVERY", c.Delivery, "exactly_once", "at_least_once")
	oneOf("TOPIC_CREATE", c.TopicCreate, "explicit", "broker", "off")
	oneOf("PARTITIONER", c.Partitioner, "murmur2", "fnv-1a")
	oneOf("ON_ERROR", c.OnError, "fail", "dead_letter")
	oneOf("ON_GAP", c.OnGap, "fail", "continue")
	oneOf("LOG_FORMAT", c.LogFormat, "auto", "text", "json")
	oneOf("LOG_LEVEL", c.LogLevel, "debug", "info", "warn", "error")
	atLeast("POLL_INTERVAL", c.PollInterval, 10*time.Millisecond)
	atLeast("QUIET_INTERVAL", c.QuietInterval, 0)
	atLeast("REGISTRY_TIMEOUT", c.RegistryTimeout, 100*time.Millisecond)
	atLeast("LOG_REPEAT", c.LogRepeat, 0)
	atLeast("KAFKA_DIAL_TIMEOUT", c.KafkaDialTimeout, 100*time.Millisecond)
	atLeast("READ_TIMEOUT", c.ReadTimeout, 100*time.Millisecond)
	atLeast("COMMIT_INTERVAL", c.CommitInterval, 10*time.Millisecond)
	atLeast("RESOLVED_SLACK", c.ResolvedSlack, 0)
	atLeast("SESSION_TIMEOUT", c.SessionTimeout, 500*time.Millisecond)
	atLeast("WATCHDOG_TIMEOUT", c.WatchdogTimeout, time.Second)
	if _, _, err := net.SplitHostPort(c.HTTPAddr); err != nil && c.HTTPAddr != "off" {
		bad("HTTP_ADDR", "want [host]:port, or off")
	}
	atLeast("SHUTDOWN_TIMEOUT", c.ShutdownTimeout, 0)
	atLeast("REPORT_INTERVAL", c.ReportInterval, 100*time.Millisecond)
	atLeast("TXN_TIMEOUT", c.TxnTimeout, c.CommitInterval+time.Second)
	if c.ReadSize < 4096 || c.ReadSize > 1<<30 {
		bad("READ_SIZE", "want 4KiB to 1GiB")
	}
	if c.MemoryLimit != 0 && c.MemoryLimit < 64<<20 {
		bad("MEMORY_LIMIT", "want at least 64MiB")
	}
	if c.TxnRecords < 1 {
		bad("TXN_RECORDS", "want at least 1")
	}
	if c.BundleReaders < 1 {
		bad("BUNDLE_READERS", "want at least 1")
	}
	if c.TxnBytes < 1<<16 || c.TxnBytes > 1<<31-1 {
		bad("TXN_BYTES", "want 64KiB to 2GiB")
	}
	if c.TopicPartitions < 1 {
		bad("TOPIC_PARTITIONS", "want at least 1")
	}
	if c.OffsetsLeases < 1 || c.OffsetsLeases > 100 {
		bad("OFFSETS_LEASES", "want 1 to 100")
	}
	if u, err := url.Parse(c.SourceAuthority); c.SourceAuthority != "" && (err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "") {
		bad("SOURCE_AUTHORITY", "want https://<host>")
	}
	if c.SourceAuth == "client_secret" {
		for name, value := range map[string]string{"SOURCE_TENANT": c.SourceTenant, "SOURCE_CLIENT_ID": c.SourceClientID, "SOURCE_CLIENT_SECRET": string(c.SourceClientSecret)} {
			if value == "" {
				bad(name, "required for SOURCE_AUTH=client_secret")
			}
		}
	}
	if c.Instance == "" {
		host, _ := os.Hostname() // "" is as good as any: the process id follows
		c.Instance = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	return problems
}
