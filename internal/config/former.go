package config

import "fmt"

// formerNames say what became of settings of former versions.
var formerNames = map[string]string{
	"READ_TIMEOUT":       network,
	"KAFKA_DIAL_TIMEOUT": network,
	"REGISTRY_TIMEOUT":   network,

	"TOPIC_PREFIX": "removed: start BRIDGE_TOPIC with it",

	"UPDATED":        option("updated"),
	"KEY_IN_VALUE":   option("key_in_value"),
	"TOPIC_IN_VALUE": option("topic_in_value"),
	"MVCC_TIMESTAMP": option("mvcc_timestamp"),
	"DIFF":           option("diff"),

	"EXCLUDE_CONTAINERS":  excluded("CONTAINERS"),
	"EXCLUDE_PREFIXES":    excluded("PREFIXES"),
	"EXCLUDE_SUFFIXES":    excluded("SUFFIXES"),
	"EXCLUDE_EVENT_TYPES": excluded("EVENT_TYPES"),

	"EXCLUDE_COLUMNS": "replaced: list the columns in BRIDGE_COLUMNS, with ! before each",

	"REGISTRY_CA":   "renamed: use BRIDGE_REGISTRY_CA_FILE",
	"REGISTRY_CERT": "renamed: use BRIDGE_REGISTRY_CERT_FILE",
	"REGISTRY_KEY":  "renamed: use BRIDGE_REGISTRY_KEY_FILE",

	"REGISTRY_TOKEN": "replaced: set BRIDGE_REGISTRY_PASSWORD to the token, without BRIDGE_REGISTRY_USERNAME",

	"BEFORE": "replaced: in BRIDGE_OPTIONS list diff, and all else that values shall hold, for full; !before for none",

	"KAFKA_PRESET": "replaced: use BRIDGE_PRESET",

	"KAFKA_SASL_TOKEN_URL":     "replaced: set BRIDGE_KAFKA_SASL_TOKENS to the URL",
	"KAFKA_SASL_TOKEN_FILE":    "replaced: set BRIDGE_KAFKA_SASL_TOKENS=file:///<path>",
	"KAFKA_SASL_CLIENT_ID":     "replaced: use BRIDGE_KAFKA_SASL_USERNAME",
	"KAFKA_SASL_CLIENT_SECRET": "replaced: use BRIDGE_KAFKA_SASL_PASSWORD",
	"KAFKA_SASL_TENANT":        "replaced: use AZURE_TENANT_ID",
	"KAFKA_TLS_INSECURE_SKIP_VERIFY": "removed, because it lets anybody read and change everything: " +
		"name the authority that signed the brokers' certificates in BRIDGE_KAFKA_TLS_CA_FILE",

	"SOURCE_TENANT":     "replaced: use AZURE_TENANT_ID",
	"SOURCE_CLIENT_ID":  "replaced: use AZURE_CLIENT_ID",
	"SOURCE_TOKEN_FILE": "replaced: use AZURE_FEDERATED_TOKEN_FILE",
	"SOURCE_AUTHORITY":  "replaced: use AZURE_AUTHORITY_HOST",

	"MEMORY_LIMIT": "replaced: use GOMEMLIMIT",

	"TXN_RECORDS":      fixed("a transaction has up to 50000 records; BRIDGE_TXN_BYTES bounds it further"),
	"BUNDLE_READERS":   fixed("16 small finished segments are listed ahead"),
	"BUNDLE_BYTES":     fixed("small finished segments share transactions of up to 8 MiB of the feed"),
	"READ_SIZE":        fixed("a ranged read has up to 4 MiB"),
	"QUIET_INTERVAL":   fixed("an open segment whose hour has passed is listed at every 20th BRIDGE_POLL_INTERVAL"),
	"SHUTDOWN_TIMEOUT": fixed("a stop commits for up to 10 s"),
	"WATCHDOG_TIMEOUT": fixed("a busy lease is stuck after 2 minutes without a commit"),
	"LOG_REPEAT":       fixed("a repeated warning is logged once a minute"),
	"REPORT_INTERVAL":  fixed("progress is logged every 30 s"),
}

const network = "replaced: use BRIDGE_NETWORK_TIMEOUT"

func option(word string) string {
	return fmt.Sprintf("replaced: list %s, and all else that values shall hold, in BRIDGE_OPTIONS, "+
		"such as BRIDGE_OPTIONS=updated,key_in_value,diff", word)
}

func excluded(name string) string {
	return fmt.Sprintf("replaced: add the items to BRIDGE_%s, with ! before each", name)
}

func fixed(how string) string { return "removed: " + how }
