package config

import (
	"time"

	"blobfeed/internal/topicname"
)

// Prefix of every environment variable.
const Prefix = "BRIDGE"

// Config are all settings. The tags are the reference: "desc" is what a user reads.
type Config struct {
	Name     string `group:"The bridge" default:"blobfeed" desc:"name of this bridge: consumer group, prefix of transactional ids, and of the state topic <name>.offsets"`
	Instance string `desc:"name of this instance, unique among those that run (default: host name and process id)"`

	SourceURL              string `group:"The account" split_words:"true" desc:"the feed: https://<account>.blob.core.windows.net, http://<host>:<port>/<account> (Azurite), or file:///<directory>; required"`
	SourceAuth             string `split_words:"true" default:"default" desc:"how to authenticate: default (the Azure credential chain), workload_identity, managed_identity, client_secret, shared_key, sas, connection_string, anonymous"`
	SourceAccount          string `split_words:"true" desc:"storage account, where SOURCE_URL does not tell"`
	SourceKey              Secret `split_words:"true" desc:"account key, for shared_key"`
	SourceSAS              Secret `split_words:"true" desc:"shared access signature, for sas"`
	SourceConnectionString Secret `split_words:"true" desc:"connection string, for connection_string"`
	SourceTenant           string `split_words:"true" desc:"Entra ID tenant (default: AZURE_TENANT_ID)"`
	SourceClientID         string `split_words:"true" desc:"Entra ID application, or the client id of a user-assigned managed identity (default: AZURE_CLIENT_ID)"`
	SourceClientSecret     Secret `split_words:"true" desc:"secret of the application, for client_secret"`
	SourceTokenFile        string `split_words:"true" desc:"file with the federated token, for workload_identity (default: AZURE_FEDERATED_TOKEN_FILE)"`
	SourceAuthority        string `split_words:"true" desc:"authority host of another cloud, such as https://login.microsoftonline.us (default: AZURE_AUTHORITY_HOST)"`

	PollInterval  time.Duration `group:"Reading the feed" split_words:"true" default:"15s" desc:"how often an open segment is looked at; Azure appends about once a minute"`
	ReadTimeout   time.Duration `split_words:"true" default:"30s" desc:"a request to the storage service that takes longer is given up and made again; what it brought is kept"`
	QuietInterval time.Duration `split_words:"true" default:"5m" desc:"how often the shards of an open segment are listed whose time is over; its end shows in its manifest, which is read every POLL_INTERVAL"`
	ReadSize      Bytes         `split_words:"true" default:"4MiB" desc:"size of one ranged read"`

	Start             string `group:"What is delivered" default:"earliest" desc:"where to begin: earliest, latest, a time, or the text of an \"updated\"; used at the first start only; frozen"`
	EndTime           string `split_words:"true" desc:"deliver what happened up to and at this time (or text of an \"updated\"), a final marker, then exit 0; frozen"`
	Containers        List   `desc:"only these containers, comma separated"`
	ExcludeContainers List   `split_words:"true" desc:"not these containers"`
	Prefixes          List   `desc:"only paths (container/blob) that begin with one of these"`
	ExcludePrefixes   List   `split_words:"true" desc:"not paths that begin with one of these"`
	Suffixes          List   `desc:"only blobs whose names end with one of these"`
	ExcludeSuffixes   List   `split_words:"true" desc:"not blobs whose names end with one of these"`
	EventTypes        List   `split_words:"true" desc:"only these event types, such as BlobCreated"`
	ExcludeEventTypes List   `split_words:"true" desc:"not these event types"`
	BlobTypes         List   `split_words:"true" desc:"only these blob types: BlockBlob, PageBlob, AppendBlob"`

	OnError string `group:"Trouble in the feed" split_words:"true" default:"fail" desc:"what can't be decoded, encoded or is too large for the topic: fail (its shard stays there, says so and tries again), or dead_letter: it goes to the topic <name>.dlq, with its position and the reason, in the same transaction"`
	OnGap   string `split_words:"true" default:"fail" desc:"when retention has removed what was to be read next: fail, or continue at the oldest segment; the next marker has a header gap then"`

	KafkaBrokers     List          `group:"Kafka" split_words:"true" desc:"host:port of some brokers, comma separated; required"`
	KafkaPreset      string        `split_words:"true" desc:"event_hubs or confluent_cloud: other defaults for the settings of Kafka, as docs/security.md lists them"`
	Delivery         string        `default:"exactly_once" desc:"exactly_once (transactions), or at_least_once for brokers without them; frozen"`
	KafkaCompression string        `split_words:"true" default:"snappy" desc:"none, snappy, lz4, zstd, gzip"`
	KafkaDialTimeout time.Duration `split_words:"true" default:"10s" desc:"a broker that lets a connection wait longer is given up, and tried again"`

	KafkaTLSEnabled            bool   `group:"Security of Kafka" split_words:"true" desc:"encrypt, and know the brokers by their certificates"`
	KafkaTLSCaFile             string `split_words:"true" desc:"authorities that sign the brokers' certificates, PEM (default: the system's); this file and the next two are read for every connection"`
	KafkaTLSCertFile           string `split_words:"true" desc:"client certificate, PEM"`
	KafkaTLSKeyFile            string `split_words:"true" desc:"its key, PEM, not encrypted"`
	KafkaTLSServerName         string `split_words:"true" desc:"name in the brokers' certificates (default: that of the address)"`
	KafkaTLSInsecureSkipVerify bool   `split_words:"true" desc:"believe any broker: for tests"`
	KafkaSASLMechanism         string `split_words:"true" desc:"PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"`
	KafkaSASLUsername          Text   `split_words:"true" desc:"user, or API key; like a secret, also as KAFKA_SASL_USERNAME_FILE"`
	KafkaSASLPassword          Secret `split_words:"true" desc:"password, or API secret; a file is read for every connection"`
	KafkaSASLTokens            string `split_words:"true" default:"client_credentials" desc:"where tokens for OAUTHBEARER come from: client_credentials (an OAuth server), file, or Entra ID: default (the Azure credential chain), workload_identity, managed_identity, client_secret"`
	KafkaSASLTokenURL          string `split_words:"true" desc:"token endpoint of the OAuth server, for client_credentials"`
	KafkaSASLTokenFile         string `split_words:"true" desc:"file with a token that somebody keeps fresh, for file"`
	KafkaSASLClientID          string `split_words:"true" desc:"client at the OAuth server, or application or managed identity of Entra ID (default: AZURE_CLIENT_ID)"`
	KafkaSASLClientSecret      Secret `split_words:"true" desc:"its secret, for client_credentials and client_secret"`
	KafkaSASLTenant            string `split_words:"true" desc:"Entra ID tenant (default: AZURE_TENANT_ID)"`
	KafkaSASLScope             string `split_words:"true" desc:"scope of the tokens; for Entra ID such as https://<namespace>.servicebus.windows.net/.default"`
	KafkaSASLExtensions        List   `split_words:"true" desc:"name=value pairs sent along with tokens, comma separated, such as logicalCluster=lkc-1"`

	Topic            string `group:"Topics" default:"blob-changes" desc:"topic of the records: a name, in which {account} and {container} stand for those of the event; what Kafka does not allow is escaped; frozen"`
	TopicPrefix      string `split_words:"true" desc:"in front of TOPIC; frozen"`
	TopicShared      bool   `split_words:"true" desc:"true allows bridges of other accounts to write to the same topics; each of them needs it. Markers then have a header feed, and hold for that feed alone"`
	TopicCreate      string `split_words:"true" default:"explicit" desc:"topics that are missing: explicit creates them, with a cleanup.policy that fits; broker lets the broker do it (auto.create.topics.enable), but for <name>.offsets; off refuses"`
	TopicLimit       int    `split_words:"true" default:"1000" desc:"maximum number of topics that TOPIC makes of {account} and {container}; a warning is logged from 80 % on. Events that would need one more are treated as ON_ERROR says"`
	TopicAdopt       bool   `split_words:"true" desc:"write also to topics that already hold records of others, where TOPIC begins with {account} or {container} and so a container can have the name of any topic. Without it such events are treated as ON_ERROR says"`
	TopicPartitions  int32  `split_words:"true" default:"6" desc:"partitions of topics that are created; not with broker"`
	TopicReplication int16  `split_words:"true" default:"-1" desc:"replication factor of topics that are created; -1 is the broker's default"`
	OffsetsLeases    int32  `split_words:"true" default:"16" desc:"partitions of the state topic when it is created: the most instances that can work at a time"`

	Format             string `group:"Records" default:"json" desc:"json or avro (needs REGISTRY_URL); frozen"`
	Envelope           string `default:"wrapped" desc:"wrapped, bare, row, key_only or enriched: docs/events.md shows each; frozen"`
	Events             string `default:"state" desc:"state: events that change a blob; all: every event; frozen"`
	KeyFormat          string `split_words:"true" desc:"json_array, json_object, string or avro (default: json_array; with FORMAT=avro, avro); frozen"`
	Partitioner        string `default:"murmur2" desc:"murmur2 (as Kafka's Java producer) or fnv-1a (as CockroachDB); frozen"`
	Updated            *bool  `desc:"write the event's time and sequence as \"updated\" (default: true where the envelope has a place for it)"`
	Diff               bool   `desc:"write what the event tells of the row before as \"before\""`
	KeyInValue         *bool  `split_words:"true" desc:"write the key as \"key\" in the value, too (default: true with wrapped, bare and enriched)"`
	TopicInValue       bool   `split_words:"true" desc:"write the topic as \"topic\" in the value, too"`
	MVCCTimestamp      bool   `split_words:"true" desc:"write \"mvcc_timestamp\", when the row was written"`
	EnrichedProperties string `split_words:"true" desc:"of ENVELOPE=enriched: source, schema, source,schema for both, or none (default: source)"`
	Before             string `desc:"before of ENVELOPE=enriched: key, none, or full, what the event tells (default: key)"`
	ExcludeColumns     List   `split_words:"true" desc:"columns of the row that are left out, such as client_request_id,blob_tags_updated; docs/security.md says which may hold personal data"`
	Deletes            string `desc:"value of a deletion: envelope, tombstone (null), both (two records), empty (default: envelope; with row, tombstone)"`
	AvroTimestamps     string `split_words:"true" desc:"type of event_time in Avro: micros, millis, string (default: micros); frozen"`
	Headers            string `default:"cloudevents" desc:"cloudevents or none"`
	ExtraHeaders       List   `split_words:"true" desc:"constant headers of all records but markers: name=value, comma separated; none that the bridge writes itself"`

	RegistryURL          List          `group:"Schema registry" split_words:"true" desc:"schema registry, tried in turn, comma separated; required for Avro"`
	RegistryAutoRegister bool          `split_words:"true" default:"true" desc:"false only looks schemas up: bridge config --format schemas prints them"`
	RegistryUsername     string        `split_words:"true" desc:"for basic authentication"`
	RegistryPassword     Secret        `split_words:"true" desc:"for basic authentication"`
	RegistryToken        Secret        `split_words:"true" desc:"for bearer authentication"`
	RegistryCA           string        `split_words:"true" desc:"file with the certificates (PEM) that sign the registry's; default: the system's"`
	RegistryCert         string        `split_words:"true" desc:"file with our certificate (PEM), for mutual TLS"`
	RegistryKey          string        `split_words:"true" desc:"file with its key (PEM)"`
	RegistryTimeout      time.Duration `split_words:"true" default:"10s" desc:"of one request to the registry"`

	ResolvedTo    string        `group:"Resolved markers" split_words:"true" desc:"when a segment is complete, a marker to every partition: inline in the topic; topic: in <topic>.resolved, with partition and offset; off: none (default: inline; with enriched, topic); frozen"`
	ResolvedSlack time.Duration `split_words:"true" default:"15m" desc:"how far before its end a complete segment is resolved: Azure puts events into segments to 15 minutes exactly"`

	CommitInterval  time.Duration `group:"Transactions and work" split_words:"true" default:"1s" desc:"a record waits no longer for its commit"`
	TxnRecords      int           `split_words:"true" default:"50000" desc:"records of a transaction in catch-up"`
	TxnBytes        Bytes         `split_words:"true" default:"64MiB" desc:"bytes of a transaction at most, and so of the memory of a lease"`
	BundleBytes     Bytes         `split_words:"true" default:"8MiB" desc:"small finished segments are delivered together, in transactions of so many bytes of the feed at most, and so much is read ahead; 0: each by itself"`
	BundleReaders   int           `split_words:"true" default:"16" desc:"how many small finished segments are listed ahead"`
	TxnTimeout      time.Duration `split_words:"true" default:"40s" desc:"transaction.timeout.ms: when a broker ends the transaction of an instance that is gone for good"`
	SessionTimeout  time.Duration `split_words:"true" default:"10s" desc:"an instance that is silent for so long loses its leases"`
	ShutdownTimeout time.Duration `split_words:"true" default:"10s" desc:"how long a stop may take to commit"`

	HTTPAddr        string        `group:"Running it" split_words:"true" default:":8080" desc:"where /healthz, /readyz, /metrics, /status and the status page are: [host]:port, or off"`
	HTTPHosts       List          `split_words:"true" desc:"host names by which the status page, /status and /metrics may be asked for, comma separated, besides IP addresses and names without a dot; * allows any name, and with it that of an attacker's page (DNS rebinding)"`
	HTTPToken       Secret        `split_words:"true" desc:"token that requests must bear, as Authorization: Bearer, or as the password of basic authentication; /healthz and /readyz stay open. A file is read again for every request"`
	HTTPCertFile    string        `split_words:"true" desc:"certificate of the HTTP server, PEM; it and its key are read for every connection"`
	HTTPKeyFile     string        `split_words:"true" desc:"its key, PEM, not encrypted"`
	MemoryLimit     Bytes         `split_words:"true" desc:"memory of the process, such as 256MiB: the engine holds fewer records and collects garbage more often near it (default: GOMEMLIMIT, or nine tenths of what the container may have; without either no limit)"`
	WatchdogTimeout time.Duration `split_words:"true" default:"2m" desc:"an instance is unready when one of its leases has had work for so long without a commit, or can't look for more"`

	LogFormat      string        `group:"Log" split_words:"true" default:"auto" desc:"auto (text on a terminal, else json), text, json"`
	LogLevel       string        `split_words:"true" default:"info" desc:"debug, info, warn, error"`
	LogRepeat      time.Duration `split_words:"true" default:"1m" desc:"a warning or error that repeats is logged once in so long, with how often it was; 0: each time"`
	ReportInterval time.Duration `split_words:"true" default:"30s" desc:"time between progress lines in the log while events flow"`

	files   map[int]string // of secrets, by index of their field
	origins map[int]string // where a value comes from, by index of its field; none: the default
}

// DeadLetterTopic is where ON_ERROR=dead_letter sends what can't become a record.
func (c *Config) DeadLetterTopic() string { return topicname.DeadLetters(c.Name) }
