// Package config holds the settings of the bridge: one struct, read from the environment and a file, and checked as a
// whole. The struct is also the table of which the help, docs/configuration.md and the masking of secrets are made.
//
// The package knows none of its users. They check what only they can parse; Config.Problem makes their error,
// which names the setting. No other package reads variables with the prefix.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"
)

// Prefix of every environment variable.
const Prefix = "BRIDGE"

// Config are all settings. The tags are the one table of them: "desc" is what a user reads; "oneof", "min" and "max"
// are checked; the type Secret masks.
type Config struct {
	Name     string `group:"The bridge" default:"blobfeed" desc:"Name of this bridge, its consumer group, and the prefix of its transactional ids and its state topic <name>.offsets."`
	Instance string `desc:"Unique name of this instance. Default: host name and process id. Two instances with the same name deliver correctly, but status and errors confuse them."`

	Preset List `oneof:"table debezium log event_hubs confluent_cloud" desc:"Defaults of other settings for a use (table, debezium or log; docs/events.md) and a Kafka service (event_hubs or confluent_cloud; docs/security.md). bridge config shows them."`

	SourceURL              string `group:"The account" split_words:"true" desc:"The feed: https://<account>.blob.core.windows.net, http://<host>:<port>/<account> (Azurite), or file:///<directory>. Required."`
	SourceAuth             string `split_words:"true" default:"default" oneof:"default workload_identity managed_identity client_secret shared_key sas connection_string anonymous" desc:"default (the Azure credential chain), workload_identity, managed_identity, client_secret, shared_key, sas, connection_string or anonymous. Entra ID identities come from AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_FEDERATED_TOKEN_FILE and AZURE_AUTHORITY_HOST."`
	SourceAccount          string `split_words:"true" desc:"Storage account, if SOURCE_URL does not name it: a directory, or a domain of your own."`
	SourceKey              Secret `split_words:"true" desc:"Account key, for shared_key."`
	SourceSAS              Secret `split_words:"true" desc:"Shared access signature, for sas."`
	SourceConnectionString Secret `split_words:"true" desc:"Connection string, for connection_string."`
	SourceClientSecret     Secret `split_words:"true" desc:"Secret of the Entra ID application, for client_secret."`

	Start        string `group:"What is delivered" default:"earliest" desc:"First event to deliver: earliest, latest, a time or a date (UTC), or an \"updated\". Used at the first start only; frozen."`
	InitialScan  string `split_words:"true" default:"no" oneof:"no yes only" desc:"At the first start, write a row for each blob of the account (docs/scan.md). no: do not. yes: then deliver the feed from its end at that time. only: then write a marker and exit with 0. Not with START."`
	ScanRequests int    `split_words:"true" default:"8" min:"1" max:"256" desc:"Maximum number of concurrent list requests of an instance. A page has up to 5,000 blobs."`
	EndTime      string `split_words:"true" desc:"Last time or \"updated\" to deliver. The bridge then writes a final marker and exits with 0; frozen."`
	Containers   List   `desc:"Only these containers. In this list and the next three, ! before an item excludes it: !logs."`
	Prefixes     List   `desc:"Only paths (container/blob) with one of these prefixes."`
	Suffixes     List   `desc:"Only blobs whose names have one of these suffixes."`
	EventTypes   List   `split_words:"true" desc:"Only these event types, such as BlobCreated."`
	BlobTypes    List   `split_words:"true" oneof:"BlockBlob PageBlob AppendBlob" desc:"Only these of BlockBlob, PageBlob, AppendBlob."`
	OnError      string `split_words:"true" default:"fail" oneof:"fail dead_letter" desc:"For an event that cannot become a record. fail: its shard reports the error and retries. dead_letter: write it to the topic <name>.dlq, in the same transaction."`
	OnGap        string `split_words:"true" default:"fail" oneof:"fail continue rescan" desc:"If retention has deleted unread events. fail: exit. continue: continue at the oldest segment; the next marker has a header gap. rescan: also repair the topics, like bridge scan --sweep."`

	KafkaBrokers     List   `group:"Kafka" split_words:"true" desc:"Some brokers, as host:port. Required."`
	Delivery         string `default:"exactly_once" oneof:"exactly_once at_least_once" desc:"exactly_once (transactions), or at_least_once for brokers without transactions; frozen."`
	KafkaCompression string `split_words:"true" default:"snappy" oneof:"none snappy lz4 zstd gzip" desc:"none, snappy, lz4, zstd or gzip."`

	KafkaTLSEnabled     bool   `group:"Security of Kafka" split_words:"true" desc:"Encrypt connections, and verify the brokers' certificates."`
	KafkaTLSCaFile      string `split_words:"true" desc:"Authorities of the brokers' certificates, PEM. Default: the system's, or Mozilla's. This file and the next two are read for every connection."`
	KafkaTLSCertFile    string `split_words:"true" desc:"Client certificate, PEM."`
	KafkaTLSKeyFile     string `split_words:"true" desc:"Key of the client certificate, PEM, not encrypted."`
	KafkaTLSServerName  string `split_words:"true" desc:"Name in the brokers' certificates. Default: that of the address."`
	KafkaSASLMechanism  string `split_words:"true" oneof:"PLAIN SCRAM-SHA-256 SCRAM-SHA-512 OAUTHBEARER" desc:"PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER. Default: no authentication by SASL."`
	KafkaSASLUsername   Text   `split_words:"true" desc:"User, API key, client of the OAuth server, or application or managed identity of Entra ID (default: AZURE_CLIENT_ID). Like a secret, also as KAFKA_SASL_USERNAME_FILE."`
	KafkaSASLPassword   Secret `split_words:"true" desc:"Password, API secret, or secret of the client. A file is read for every connection."`
	KafkaSASLTokens     string `split_words:"true" desc:"Tokens for OAUTHBEARER: https://<token endpoint> of an OAuth server, file:///<file>, default, workload_identity, managed_identity or client_secret (docs/security.md)."`
	KafkaSASLScope      string `split_words:"true" desc:"Scope of the tokens, for Entra ID such as https://<namespace>.servicebus.windows.net/.default."`
	KafkaSASLExtensions List   `split_words:"true" desc:"SASL extensions sent with tokens, as name=value pairs, such as logicalCluster=lkc-1."`

	Topic            string `group:"Topics" default:"blob-changes" desc:"Topic of the records; {account} and {container} stand for those of the event. Characters that Kafka does not allow are escaped; frozen."`
	TopicShared      bool   `split_words:"true" desc:"Allow bridges of other accounts, which also need this setting, to write to the same topics (docs/operations.md)."`
	TopicCreate      string `split_words:"true" default:"explicit" oneof:"explicit broker off" desc:"Who creates missing topics. explicit: the bridge. broker: the brokers (auto.create.topics.enable), except for <name>.offsets. off: nobody; a missing topic is an error."`
	TopicLimit       int    `split_words:"true" default:"1000" min:"1" max:"10000" desc:"Maximum number of topics of a template. Events that need one more are treated as ON_ERROR says."`
	TopicAdopt       bool   `split_words:"true" desc:"If TOPIC begins with {account} or {container}, also write to topics that hold other records. Otherwise such events are treated as ON_ERROR says."`
	TopicLimited     bool   `split_words:"true" desc:"With INITIAL_SCAN, also accept topics whose retention deletes records: they do not stay a copy of the account. Otherwise such topics are rejected."`
	TopicPartitions  int32  `split_words:"true" default:"6" min:"1" desc:"Partitions of created topics; not for TOPIC_CREATE=broker."`
	TopicReplication int16  `split_words:"true" default:"-1" desc:"Replication factor of created topics; -1 is the brokers' default."`
	OffsetsLeases    int32  `split_words:"true" default:"16" min:"1" max:"100" desc:"Partitions of the state topic when it is created: how many instances can work at a time."`

	Format             string `group:"Records" default:"json" desc:"json or avro (needs REGISTRY_URL); frozen."`
	Envelope           string `default:"wrapped" desc:"wrapped, bare, row, key_only or enriched: docs/events.md shows each; frozen."`
	Options            List   `oneof:"updated key_in_value topic_in_value mvcc_timestamp diff none !before" desc:"What values hold besides the row, as in CockroachDB's WITH clause: updated (time and sequence of the event), key_in_value, topic_in_value, mvcc_timestamp (when the row was written), diff (\"before\" is the row before, as far as the event has it), or none. Default: updated and key_in_value, if the envelope has a place for them. !before: leave out \"before\" of ENVELOPE=enriched, which without diff has the key."`
	Events             string `default:"state" desc:"state: events that change a blob; all: every event; frozen."`
	KeyFormat          string `split_words:"true" desc:"json_array, json_object, string or avro. Default: json_array; with FORMAT=avro, avro; frozen."`
	Partitioner        string `default:"murmur2" oneof:"murmur2 fnv-1a" desc:"murmur2 (as Kafka's Java producer) or fnv-1a (as CockroachDB); frozen."`
	EnrichedProperties string `split_words:"true" desc:"For ENVELOPE=enriched: source, schema, source,schema or none. Default: source."`
	Columns            List   `desc:"Columns of the row besides path (blob_type,content_length), or those to omit (!client_request_id,!blob_tags_updated). docs/events.md lists all, docs/security.md those that may hold personal data. Default: all; frozen."`
	Maps               string `default:"native" desc:"Columns that are maps, such as blob_tags_updated: native, json (a string of JSON, for sinks such as JDBC that need plain columns) or omit; frozen."`
	Deletes            string `desc:"Value of a deletion: envelope, tombstone (null), both (two records) or empty. Default: envelope; with row, tombstone."`
	AvroTimestamps     string `split_words:"true" desc:"Type of event_time in Avro: micros, millis or string. Default: micros; frozen."`
	Headers            string `default:"cloudevents" desc:"Headers of records: cloudevents or none."`
	ExtraHeaders       List   `split_words:"true" desc:"Constant headers of all records but markers, as name=value pairs."`

	RegistryURL          List   `group:"Schema registry" split_words:"true" desc:"URLs of one schema registry, tried in turn. Required for Avro."`
	RegistryAutoRegister bool   `split_words:"true" default:"true" desc:"Register schemas. false: only look them up; bridge config --format schemas prints them."`
	RegistryUsername     string `split_words:"true" desc:"User, for basic authentication."`
	RegistryPassword     Secret `split_words:"true" desc:"Password, for basic authentication. Without REGISTRY_USERNAME: token, for bearer authentication."`
	RegistryCaFile       string `split_words:"true" desc:"Authorities of the registry's certificate, PEM. Default: the system's, or Mozilla's."`
	RegistryCertFile     string `split_words:"true" desc:"Client certificate, PEM."`
	RegistryKeyFile      string `split_words:"true" desc:"Key of the client certificate, PEM."`

	ResolvedTo    string        `group:"Resolved markers" split_words:"true" desc:"Where to write markers. inline: into the topic. topic: into <topic>.resolved, with partition and offset. off: nowhere. Default: inline; with ENVELOPE=enriched, topic; frozen."`
	ResolvedSlack time.Duration `split_words:"true" default:"15m" min:"0s" desc:"How far before its end a complete segment is resolved (docs/delivery.md)."`

	PollInterval   time.Duration `group:"Work" split_words:"true" default:"15s" min:"10ms" desc:"How often to read an open segment. If it divides a minute, reads follow Azure's appends."`
	CommitInterval time.Duration `split_words:"true" default:"1s" min:"10ms" desc:"Maximum time between reading an event and committing its record, unless the brokers need longer to end a transaction."`
	TxnBytes       Bytes         `split_words:"true" default:"256MiB" min:"64KiB" max:"2GiB" desc:"Maximum size of a transaction."`
	TxnTimeout     time.Duration `split_words:"true" default:"40s" desc:"transaction.timeout.ms: when the brokers abort the transaction of a dead instance."`
	SessionTimeout time.Duration `split_words:"true" default:"10s" min:"500ms" desc:"How long an instance can be silent before it loses its leases."`
	NetworkTimeout time.Duration `split_words:"true" default:"10s" min:"100ms" desc:"Maximum wait for a connection to a broker, and for an answer of the schema registry. A storage request may take three times as long; then it is resumed after the bytes received."`

	HTTPAddr     string `group:"HTTP server" split_words:"true" default:":8080" desc:"Address of /healthz, /readyz, /metrics, /status and the status page: [host]:port, or off."`
	HTTPHosts    List   `split_words:"true" desc:"Host names allowed in requests, besides IP addresses and names without a dot. * allows every name: no defence against DNS rebinding."`
	HTTPToken    Secret `split_words:"true" desc:"Token that requests must have, as Authorization: Bearer or basic password, except /healthz and /readyz. A file is read for every request."`
	HTTPCertFile string `split_words:"true" desc:"Certificate of the HTTP server, PEM. The certificate and its key are read for every connection."`
	HTTPKeyFile  string `split_words:"true" desc:"Key of the certificate, PEM, not encrypted."`

	LogFormat string `group:"Log" split_words:"true" default:"auto" oneof:"auto text json" desc:"text, json, or auto: text on a terminal, otherwise json."`
	LogLevel  string `split_words:"true" default:"info" oneof:"debug info warn error" desc:"debug, info, warn or error."`

	Tuning Tuning `ignored:"true"`

	env       Env
	files     map[string]string // of secrets, by name of the setting
	overruled []string          // settings of the file that the environment sets to another value
	origins   map[string]string // where a value comes from, by name of the setting; none: the default
	places    map[string]string // in the settings file, such as bridge.yaml:3, by name of the setting
	beside    []string          // the other bridges of the settings file
}

// Tuning are bounds that users need not know. Only tests change them, by BRIDGE_DEBUG=txn_records=5000,read_size=64KiB,
// and bridge check, for which a person waits.
type Tuning struct {
	TxnRecords      int           `split_words:"true" default:"50000" min:"1"` // of a transaction
	BundleReaders   int           `split_words:"true" default:"16" min:"1"`    // small finished segments listed ahead
	BundleBytes     Bytes         `split_words:"true" default:"8MiB"`          // of small finished segments in one transaction; 0: each by itself
	ReadSize        Bytes         `split_words:"true" default:"4MiB" min:"4KiB" max:"1GiB"`
	StorageRetries  int32         `split_words:"true" min:"0"`                   // of a request; 0: some, over 15 s
	QuietInterval   time.Duration `split_words:"true" min:"0s"`                  // 0: by POLL_INTERVAL
	ScanRound       time.Duration `split_words:"true" default:"10s" min:"10ms"`  // how long a scan holds up delivery at a time
	ShutdownTimeout time.Duration `split_words:"true" default:"10s" min:"0s"`    // for the commit at a stop
	WatchdogTimeout time.Duration `split_words:"true" default:"2m" min:"1s"`     // without a commit a busy lease is stuck
	LogRepeat       time.Duration `split_words:"true" default:"1m" min:"0s"`     // between repeats of one warning; 0: each is logged
	ReportInterval  time.Duration `split_words:"true" default:"30s" min:"100ms"` // between progress lines in the log
}

// storageShare is the part of a storage request's time that NETWORK_TIMEOUT is: it carries more than the others.
const storageShare = 3

// StorageTimeout returns how long one request to the storage service may take.
func (c *Config) StorageTimeout() time.Duration { return storageShare * c.NetworkTimeout }

// quietPolls is how many polls of an open segment there are for a listing of its shards after its hour has passed.
const quietPolls = 20

// QuietInterval returns how often to list the shards of an open segment after its hour has passed.
func (c *Config) QuietInterval() time.Duration {
	return cmp.Or(c.Tuning.QuietInterval, quietPolls*c.PollInterval)
}

// Registry reports whether records need schemas.
func (c *Config) Registry() bool { return c.Format == "avro" || c.KeyFormat == "avro" }

// Identity is the identity at Entra ID that the standard variables of Azure's SDKs describe.
type Identity struct {
	Tenant, ClientID string
	TokenFile        string // the federated token, for workload_identity
	Authority        string // of another cloud; "": the public one
}

// Identity returns the identity for the account.
func (c *Config) Identity() Identity {
	return Identity{Tenant: c.env[tenant], ClientID: c.env[client],
		TokenFile: c.env["AZURE_FEDERATED_TOKEN_FILE"], Authority: c.env["AZURE_AUTHORITY_HOST"]}
}

// KafkaIdentity returns the identity of which the tokens for Kafka are.
func (c *Config) KafkaIdentity() Identity {
	i := c.Identity()
	i.ClientID = cmp.Or(string(c.KafkaSASLUsername), i.ClientID)
	return i
}

const (
	tenant = "AZURE_TENANT_ID"
	client = "AZURE_CLIENT_ID"
)

// Secret is a value that is never shown.
type Secret string

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "(set)"
}

// Format keeps every verb of fmt from showing it.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue keeps it out of logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText keeps encoders from showing it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Decode is called by envconfig.
func (s *Secret) Decode(text string) error {
	*s = Secret(strings.TrimSpace(text))
	return nil
}

// Text is a value that may also come from a file. Unlike a Secret, it is shown.
type Text string

// Decode is called by envconfig.
func (s *Text) Decode(text string) error {
	*s = Text(strings.TrimSpace(text))
	return nil
}

// List is written with commas. Spaces around its items do not count, nor do empty ones: nothing in the feed would equal
// them.
type List []string

// not excludes an item of a list that selects events.
const not = "!"

// Included returns the items that the list selects.
func (l List) Included() (items []string) {
	for _, item := range l {
		if !strings.HasPrefix(item, not) {
			items = append(items, item)
		}
	}
	return items
}

// Excluded returns the items that the list excludes.
func (l List) Excluded() (items []string) {
	for _, item := range l {
		if item, ok := strings.CutPrefix(item, not); ok {
			items = append(items, item)
		}
	}
	return items
}

// Decode is called by envconfig.
func (l *List) Decode(text string) error {
	*l = nil
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			*l = append(*l, item)
		}
	}
	return nil
}

// Bytes is a size, written as 65536, 64KiB, 4MiB or 1GiB.
type Bytes int

var units = []struct {
	suffix string
	size   float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}, {"", 1}}

const maxBytes = 1 << 40

// Decode is called by envconfig.
func (b *Bytes) Decode(text string) error {
	for _, u := range units {
		number, ok := strings.CutSuffix(strings.TrimSpace(text), u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || n < 0 || n*u.size > maxBytes {
			break
		}
		*b = Bytes(n * u.size)
		return nil
	}
	return errors.New("want a size up to 1TiB such as 65536, 64KiB or 4MiB")
}
