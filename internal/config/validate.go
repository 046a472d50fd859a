package config

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"blobfeed/bridge"
	"blobfeed/internal/topicname"
	"blobfeed/source/azure"
)

var topicName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,240}$`)

// validate checks what envconfig can't, and fills defaults that depend on the machine.
func (c *Config) validate(feed, kafka bool) []error {
	var p problems
	if feed && c.SourceURL == "" && c.SourceConnectionString == "" {
		p.add("SOURCE_URL", "required: https://<account>.blob.core.windows.net, or file:///<directory>")
	}
	if kafka && len(c.KafkaBrokers) == 0 {
		p.add("KAFKA_BROKERS", "required: host:port of some brokers, comma separated")
	}
	if slices.ContainsFunc(c.KafkaBrokers, func(s string) bool { return strings.ContainsAny(s, "/@=;") }) {
		p.add("KAFKA_BROKERS", "want host:port, comma separated: no scheme, user or connection string")
	}
	if !topicName.MatchString(c.Name) {
		p.add("NAME", "want letters, digits, '.', '_' and '-' only: it names a topic")
	}
	if topics, err := c.Topics(""); err != nil {
		p.add("TOPIC", "%w", err)
	} else {
		for _, own := range []string{topicname.State(c.Name), c.DeadLetterTopic()} {
			if topics.Meets(own) {
				p.add("TOPIC", "records could go to %s, a topic of the bridge's own: choose another TOPIC, TOPIC_PREFIX or NAME", own)
			}
		}
	}
	if n := c.LongestTopic(); n > maxTopic {
		p.add("TOPIC", "names of up to %d bytes, and a topic has %d", n, maxTopic)
	}
	c.validateOutput(&p, feed && kafka)
	c.validateFilter(&p)
	c.validateSource(&p)
	if !slices.Contains(presets, c.KafkaPreset) {
		p.add("KAFKA_PRESET", "want one of %s", presetNames())
	}
	if kafka || len(c.KafkaBrokers) > 0 {
		c.validateSecurity(&p)
	}
	p.oneOf("KAFKA_COMPRESSION", c.KafkaCompression, "none", "snappy", "lz4", "zstd", "gzip")
	p.oneOf("DELIVERY", c.Delivery, "exactly_once", "at_least_once")
	p.oneOf("TOPIC_CREATE", c.TopicCreate, "explicit", "broker", "off")
	p.oneOf("PARTITIONER", c.Partitioner, "murmur2", "fnv-1a")
	p.oneOf("ON_ERROR", c.OnError, "fail", "dead_letter")
	p.oneOf("ON_GAP", c.OnGap, "fail", "continue")
	p.oneOf("LOG_FORMAT", c.LogFormat, "auto", "text", "json")
	p.oneOf("LOG_LEVEL", c.LogLevel, "debug", "info", "warn", "error")
	p.atLeast("POLL_INTERVAL", c.PollInterval, 10*time.Millisecond)
	p.atLeast("QUIET_INTERVAL", c.QuietInterval, 0)
	p.atLeast("REGISTRY_TIMEOUT", c.RegistryTimeout, 100*time.Millisecond)
	p.atLeast("LOG_REPEAT", c.LogRepeat, 0)
	p.atLeast("KAFKA_DIAL_TIMEOUT", c.KafkaDialTimeout, 100*time.Millisecond)
	p.atLeast("READ_TIMEOUT", c.ReadTimeout, 100*time.Millisecond)
	p.atLeast("COMMIT_INTERVAL", c.CommitInterval, 10*time.Millisecond)
	p.atLeast("RESOLVED_SLACK", c.ResolvedSlack, 0)
	p.atLeast("SESSION_TIMEOUT", c.SessionTimeout, 500*time.Millisecond)
	p.atLeast("WATCHDOG_TIMEOUT", c.WatchdogTimeout, time.Second)
	if _, _, err := net.SplitHostPort(c.HTTPAddr); err != nil && c.HTTPAddr != "off" {
		p.add("HTTP_ADDR", "want [host]:port, or off")
	}
	if slices.ContainsFunc(c.HTTPHosts, func(host string) bool { return strings.ContainsAny(host, ":/[]") }) {
		p.add("HTTP_HOSTS", "want host names without a scheme or port, comma separated")
	}
	if (c.HTTPCertFile == "") != (c.HTTPKeyFile == "") {
		p.add("HTTP_CERT_FILE", "set it together with HTTP_KEY_FILE")
	} else if c.HTTPCertFile != "" {
		if _, err := tls.LoadX509KeyPair(c.HTTPCertFile, c.HTTPKeyFile); err != nil {
			p.add("HTTP_CERT_FILE", "%w", err)
		}
	}
	p.atLeast("SHUTDOWN_TIMEOUT", c.ShutdownTimeout, 0)
	p.atLeast("REPORT_INTERVAL", c.ReportInterval, 100*time.Millisecond)
	p.atLeast("TXN_TIMEOUT", c.TxnTimeout, c.CommitInterval+time.Second)
	if c.ReadSize < 4096 || c.ReadSize > 1<<30 {
		p.add("READ_SIZE", "want 4KiB to 1GiB")
	}
	if c.MemoryLimit != 0 && c.MemoryLimit < 64<<20 {
		p.add("MEMORY_LIMIT", "want at least 64MiB")
	}
	if c.TxnRecords < 1 {
		p.add("TXN_RECORDS", "want at least 1")
	}
	if c.BundleReaders < 1 {
		p.add("BUNDLE_READERS", "want at least 1")
	}
	if c.TxnBytes < 1<<16 || c.TxnBytes > 1<<31-1 {
		p.add("TXN_BYTES", "want 64KiB to 2GiB")
	}
	if c.TopicLimit < 1 || c.TopicLimit > 10_000 {
		p.add("TOPIC_LIMIT", "want 1 to 10000")
	}
	if c.TopicPartitions < 1 {
		p.add("TOPIC_PARTITIONS", "want at least 1")
	}
	if c.OffsetsLeases < 1 || c.OffsetsLeases > 100 {
		p.add("OFFSETS_LEASES", "want 1 to 100")
	}
	if c.Instance == "" {
		host, _ := os.Hostname() // "" is as good as any: the process id follows
		c.Instance = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	return p
}

// validateSource checks how we get at the feed. Where a credential is set and the way is not, the chain of default may well
// find some other identity.
func (c *Config) validateSource(p *problems) {
	p.oneOf("SOURCE_AUTH", c.SourceAuth, azure.Auths...)
	for _, way := range [][]string{
		{"shared_key", "SOURCE_KEY", string(c.SourceKey)},
		{"sas", "SOURCE_SAS", string(c.SourceSAS)},
		{"connection_string", "SOURCE_CONNECTION_STRING", string(c.SourceConnectionString)},
		{"client_secret", "SOURCE_CLIENT_SECRET", string(c.SourceClientSecret)},
	} {
		if auth := "SOURCE_AUTH=" + way[0]; c.SourceAuth == way[0] {
			p.required(auth, way[1:]...)
		} else if c.SourceAuth == "default" {
			p.idle(auth, way[1:]...)
		}
	}
	if c.SourceAuth == "client_secret" {
		p.required("SOURCE_AUTH=client_secret", "SOURCE_TENANT", c.SourceTenant, "SOURCE_CLIENT_ID", c.SourceClientID)
	}
	if path, ok := strings.CutPrefix(c.SourceURL, "file://"); ok && !filepath.IsAbs(path) {
		p.add("SOURCE_URL", "want file:///<absolute path>")
	}
	if u, err := url.Parse(c.SourceAuthority); c.SourceAuthority != "" && (err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "") {
		p.add("SOURCE_AUTHORITY", "want https://<host>")
	}
}

// eventTypes are those of the feed's schemas up to version 5. Newer ones pass.
var eventTypes = []string{
	"BlobCreated", "BlobDeleted", "BlobPropertiesUpdated", "BlobMetadataUpdated", "BlobTierChanged", "BlobSnapshotCreated", "BlobAsyncOperationInitiated",
	"RestorePointMarkerCreated", "Control",
}

// validateFilter refuses what selects nothing: what is left out is not delivered later.
func (c *Config) validateFilter(p *problems) {
	if _, err := bridge.ParseStart(c.Start); err != nil {
		p.add("START", "%w", err)
	}
	if c.EndTime != "" {
		if _, err := bridge.ParseEnd(c.EndTime); err != nil {
			p.add("END_TIME", "%w", err)
		}
	}
	for _, blobType := range c.BlobTypes {
		p.oneOf("BLOB_TYPES", blobType, "BlockBlob", "PageBlob", "AppendBlob")
	}
	likely := map[string]string{}
	for _, known := range eventTypes {
		likely[strings.ToLower(known)] = known
	}
	for name, list := range map[string]List{"EVENT_TYPES": c.EventTypes, "EXCLUDE_EVENT_TYPES": c.ExcludeEventTypes} {
		for _, written := range list {
			lower := strings.TrimPrefix(strings.ToLower(written), "microsoft.storage.")
			if near := likely[nearest(lower, slices.Collect(maps.Keys(likely)), 2)]; near != "" && near != written {
				p.add(name, "no event has the type %s in the feed: did you mean %s?", written, near)
			}
		}
	}
}
