package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobfeed/internal/plain"
)

var topicName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,240}$`)

// validate checks what envconfig does not, and fills defaults that depend on the machine.
func (c *Config) validate(p *problems, feed, kafka bool) {
	for _, s := range table {
		s.checkBounds(c, func(problem string) { p.add(s.name, "%s", problem) })
	}
	if feed && c.SourceURL == "" && c.SourceConnectionString == "" {
		p.add("SOURCE_URL", "required: https://<account>.blob.core.windows.net, or file:///<directory>")
	}
	if kafka && len(c.KafkaBrokers) == 0 {
		p.add("KAFKA_BROKERS", "required: host:port of some brokers, comma separated")
	}
	if slices.ContainsFunc(c.KafkaBrokers, func(s string) bool { return strings.ContainsAny(s, "/@=; \t\"'") }) {
		p.add("KAFKA_BROKERS", "want host:port, comma separated: no scheme, user or connection string")
	} else if slices.ContainsFunc(c.KafkaBrokers, wrongPort) {
		p.add("KAFKA_BROKERS", "want host:port, comma separated: a port is a number up to 65535")
	}
	if !topicName.MatchString(c.Name) {
		p.invalid("NAME", c.Name, "want letters, digits, '.', '_' and '-' only: it names a topic")
	}
	if words := c.Options.Included(); len(words) > 1 && slices.Contains(words, "none") {
		p.add("OPTIONS", "want none alone, or other words")
	}
	if c.InitialScan != "no" && c.InitialScan != "" && c.Start != "earliest" {
		p.add("START", "not with %s: the scan decides where the feed begins; leave it out", variable("INITIAL_SCAN"))
	}
	c.validateSource(p)
	c.validateFilter(p)
	if kafka || len(c.KafkaBrokers) > 0 {
		c.validateSecurity(p)
	}
	c.validateRegistry(p, feed && kafka)
	c.validateHTTP(p)
	if least := c.CommitInterval + time.Second; c.TxnTimeout < least {
		p.add("TXN_TIMEOUT", "want at least %s, a second more than %s", least, variable("COMMIT_INTERVAL"))
	}
	if c.Instance == "" {
		host, _ := os.Hostname() // without a name, the process id alone
		c.Instance = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
}

// wrongPort reports whether the port of an address is no number. Without one, it is Kafka's.
func wrongPort(broker string) bool {
	_, port, err := net.SplitHostPort(broker)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err != nil
}

// validateSource checks the access to the feed. If a credential is set and SOURCE_AUTH is not, the default chain may
// find some other identity.
func (c *Config) validateSource(p *problems) {
	for _, way := range [][]string{
		{"shared_key", "SOURCE_KEY", string(c.SourceKey)},
		{"sas", "SOURCE_SAS", string(c.SourceSAS)},
		{"connection_string", "SOURCE_CONNECTION_STRING", string(c.SourceConnectionString)},
		{"client_secret", "SOURCE_CLIENT_SECRET", string(c.SourceClientSecret)},
	} {
		if auth := variable("SOURCE_AUTH=") + way[0]; c.SourceAuth == way[0] {
			p.required(auth, way[1:]...)
		} else if c.SourceAuth == "default" {
			p.idle(auth, way[1:]...)
		}
	}
	if i := c.Identity(); c.SourceAuth == "client_secret" && (i.Tenant == "" || i.ClientID == "") {
		p.add("SOURCE_AUTH", "client_secret needs the variables %s and %s", tenant, client)
	}
	if strings.HasPrefix(c.SourceURL, "file:") && !strings.HasPrefix(c.SourceURL, "file:///") {
		p.add("SOURCE_URL", "want file:///<absolute path>")
	}
}

// eventTypes are those of the feed that are known. Others pass.
var eventTypes = []string{
	"BlobCreated", "BlobDeleted", "BlobPropertiesUpdated", "BlobMetadataUpdated", "BlobTierChanged",
	"BlobTagsUpdated", "BlobSnapshotCreated", "BlobAsyncOperationInitiated", "RestorePointMarkerCreated", "Control",
	"AppendBlobDataUpdated", "BlobLastAccessTimeUpdated", "ContainerCreated", "ContainerPropertiesUpdated",
}

// validateFilter reports lists that select nothing by mistake: events that are left out are not delivered later.
func (c *Config) validateFilter(p *problems) {
	for _, name := range []string{"CONTAINERS", "PREFIXES", "SUFFIXES", "EVENT_TYPES", "COLUMNS"} {
		s, _ := find(table, name)
		if slices.Contains(s.of(c).Interface().(List).Excluded(), "") {
			p.add(name, "want an item after !")
		}
	}
	for _, name := range c.Containers {
		name = strings.TrimPrefix(name, not)
		if strings.Contains(name, "/") {
			p.add("CONTAINERS", "%s is not a container: use %s for a folder", name, variable("PREFIXES"))
		} else if name != strings.ToLower(name) {
			p.add("CONTAINERS", "%s is not a container: their names are in lower case", name)
		}
		if slices.Contains(c.Containers, name) && slices.Contains(c.Containers, not+name) {
			p.add("CONTAINERS", "%s is both selected and left out", name)
			break
		}
	}
	for _, text := range c.Prefixes {
		if text = strings.TrimPrefix(text, not); strings.HasPrefix(text, "/") {
			p.add("PREFIXES", "%s: no path begins with a slash, but with the container, as in photos/2026/", text)
		}
		if short, is := strings.CutSuffix(text, "*"); is {
			p.add("PREFIXES", "%s: an asterisk stands for itself: write %s", text, short)
		}
	}
	for _, text := range c.Suffixes {
		text = strings.TrimPrefix(text, not)
		if short, is := strings.CutPrefix(text, "*"); is {
			p.add("SUFFIXES", "%s: an asterisk stands for itself: write %s", text, short)
		}
	}
	likely := map[string]string{}
	for _, known := range eventTypes {
		likely[strings.ToLower(known)] = known
	}
	for _, written := range c.EventTypes {
		written = strings.TrimPrefix(written, not)
		lower := strings.TrimPrefix(strings.ToLower(written), "microsoft.storage.")
		near := likely[plain.Nearest(lower, slices.Collect(maps.Keys(likely)), 2)]
		if near == "" {
			near = likely["blob"+lower]
		}
		if near != "" && near != written {
			p.add("EVENT_TYPES", "no event has the type %s in the feed: did you mean %s?", written, near)
		}
	}
}

func (c *Config) validateRegistry(p *problems, required bool) {
	if required && c.Registry() && len(c.RegistryURL) == 0 {
		p.add("REGISTRY_URL", "required for Avro, such as http://host:8081")
	}
	for _, text := range c.RegistryURL {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			p.add("REGISTRY_URL", "want http://host:port or https://host:port, comma separated")
		} else if u.User != nil || u.RawQuery != "" {
			p.add("REGISTRY_URL", "want no user and no query, which would be shown: use %s and %s",
				variable("REGISTRY_USERNAME"), variable("REGISTRY_PASSWORD"))
		}
	}
	if c.RegistryUsername != "" && c.RegistryPassword == "" {
		p.together("REGISTRY_USERNAME", "REGISTRY_PASSWORD")
	}
	if (c.RegistryCertFile == "") != (c.RegistryKeyFile == "") {
		p.together("REGISTRY_CERT_FILE", "REGISTRY_KEY_FILE")
	}
}

// known reports whether a port of this machine can be that.
func known(port string) bool {
	_, err := net.LookupPort("tcp", port)
	return err == nil
}

func (c *Config) validateHTTP(p *problems) {
	if _, port, err := net.SplitHostPort(c.HTTPAddr); c.HTTPAddr != "off" && (err != nil || !known(port)) {
		p.invalid("HTTP_ADDR", c.HTTPAddr, "want [host]:port, or off")
	}
	if slices.ContainsFunc(c.HTTPHosts, func(host string) bool { return strings.ContainsAny(host, ":/[]") }) {
		p.add("HTTP_HOSTS", "want host names without a scheme or port, comma separated")
	}
	if (c.HTTPCertFile == "") != (c.HTTPKeyFile == "") {
		p.together("HTTP_CERT_FILE", "HTTP_KEY_FILE")
	} else if c.HTTPCertFile != "" {
		if _, err := tls.LoadX509KeyPair(c.HTTPCertFile, c.HTTPKeyFile); err != nil {
			p.add("HTTP_CERT_FILE", "%w", err)
		}
	}
}

// entra are the values of KAFKA_SASL_TOKENS by which tokens come from Entra ID.
var entra = []string{"default", "workload_identity", "managed_identity", "client_secret"}

// EntraTokens reports whether the tokens for Kafka come from Entra ID.
func (c *Config) EntraTokens() bool { return slices.Contains(entra, c.KafkaSASLTokens) }

// validateSecurity checks the access to Kafka, and that credentials for the registry stay private.
func (c *Config) validateSecurity(p *problems) {
	for _, host := range c.clearRegistries() {
		if !local(host) {
			p.add("REGISTRY_URL", "the credentials for the registry would be sent to %s unencrypted: use https", host)
		}
	}
	if !c.KafkaTLSEnabled {
		p.idle(variable("KAFKA_TLS_ENABLED=true"), "KAFKA_TLS_CA_FILE", c.KafkaTLSCaFile,
			"KAFKA_TLS_CERT_FILE", c.KafkaTLSCertFile, "KAFKA_TLS_KEY_FILE", c.KafkaTLSKeyFile,
			"KAFKA_TLS_SERVER_NAME", c.KafkaTLSServerName)
	}
	if (c.KafkaTLSCertFile == "") != (c.KafkaTLSKeyFile == "") {
		p.together("KAFKA_TLS_CERT_FILE", "KAFKA_TLS_KEY_FILE")
	}
	switch c.KafkaSASLMechanism {
	case "":
		p.idle(variable("KAFKA_SASL_MECHANISM"), append(c.saslPair(),
			"KAFKA_SASL_TOKENS", c.KafkaSASLTokens, "KAFKA_SASL_SCOPE", c.KafkaSASLScope,
			"KAFKA_SASL_EXTENSIONS", strings.Join(c.KafkaSASLExtensions, ","))...)
	case "OAUTHBEARER":
		c.validateTokens(p)
	case "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512":
		p.required(variable("KAFKA_SASL_MECHANISM=")+c.KafkaSASLMechanism, c.saslPair()...)
	}
}

// saslPair returns the credentials for Kafka by the names of their settings.
func (c *Config) saslPair() []string {
	return []string{"KAFKA_SASL_USERNAME", string(c.KafkaSASLUsername),
		"KAFKA_SASL_PASSWORD", string(c.KafkaSASLPassword)}
}

// TokenFile returns the file with the token for Kafka; "" if tokens come from elsewhere.
func (c *Config) TokenFile() string {
	path, ok := strings.CutPrefix(c.KafkaSASLTokens, "file://")
	if !ok {
		return ""
	}
	return path
}

func (c *Config) validateTokens(p *problems) {
	credentials := c.saslPair()
	u, err := url.Parse(c.KafkaSASLTokens)
	switch from := variable("KAFKA_SASL_TOKENS=") + c.KafkaSASLTokens; {
	case c.KafkaSASLTokens == "":
		p.required(variable("KAFKA_SASL_MECHANISM=OAUTHBEARER"), "KAFKA_SASL_TOKENS", "")
	case c.EntraTokens():
		p.required(from, "KAFKA_SASL_SCOPE", c.KafkaSASLScope)
		if c.KafkaSASLTokens == "client_secret" {
			credentials[1] = c.KafkaIdentity().ClientID
			p.required(from, credentials...)
			if c.Identity().Tenant == "" {
				p.add("KAFKA_SASL_TOKENS", "client_secret needs the variable %s", tenant)
			}
		}
	case err == nil && u.Scheme == "file" && u.Host == "" && filepath.IsAbs(u.Path):
	// The secret is in the request.
	case err == nil && u.Host != "" && u.User == nil &&
		(u.Scheme == "https" || u.Scheme == "http" && local(u.Hostname())):
		p.required("the OAuth server of "+variable("KAFKA_SASL_TOKENS"), credentials...)
	default:
		p.add("KAFKA_SASL_TOKENS",
			"want https://<token endpoint> without a user, file:///<absolute path>, or one of %s",
			strings.Join(entra, ", "))
	}
	for _, pair := range c.KafkaSASLExtensions {
		if name, _, ok := strings.Cut(pair, "="); !ok || name == "" || name == "auth" {
			p.add("KAFKA_SASL_EXTENSIONS", "want name=value pairs, comma separated; the name auth is taken")
		}
	}
}

// local reports whether host is this machine.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Insecure returns what is dangerous in the access to Kafka, the account and the registry, although it works. Each has
// a remedy.
func (c *Config) Insecure() (dangers []error) {
	danger := func(what, do string) { dangers = append(dangers, plain.WithRemedy(errors.New(what), do)) }
	const encrypt = "set BRIDGE_KAFKA_TLS_ENABLED=true"
	switch remote := slices.ContainsFunc(c.KafkaBrokers, remoteBroker); {
	case c.KafkaTLSEnabled:
	case c.KafkaSASLMechanism == "PLAIN", c.KafkaSASLMechanism == "OAUTHBEARER":
		danger("the credentials for Kafka are sent unencrypted", encrypt)
	case strings.HasPrefix(c.KafkaSASLMechanism, "SCRAM"):
		danger("Kafka is reached unencrypted: the password can be guessed from what is sent, and the connection "+
			"taken over", encrypt)
	case remote:
		danger("Kafka is reached unencrypted: anybody on the network path can read and change everything", encrypt)
	}
	if len(c.clearRegistries()) > 0 {
		danger("the credentials for the schema registry are sent unencrypted", "use https in BRIDGE_REGISTRY_URL")
	}
	if c.clearSignature() {
		danger("the shared access signature is sent unencrypted", "use https for the storage service")
	}
	if strings.HasPrefix(c.KafkaSASLTokens, "http://") {
		danger("the client secret is sent unencrypted", "use https in BRIDGE_KAFKA_SASL_TOKENS")
	}
	return dangers
}

func remoteBroker(broker string) bool {
	host, _, err := net.SplitHostPort(broker)
	return err != nil || !local(host)
}

// clearRegistries returns the hosts that get the registry's credentials over http.
func (c *Config) clearRegistries() (hosts []string) {
	if c.RegistryPassword == "" {
		return nil
	}
	for _, text := range c.RegistryURL {
		if u, err := url.Parse(text); err == nil && u.Scheme == "http" {
			hosts = append(hosts, u.Hostname())
		}
	}
	return hosts
}

// clearSignature reports whether a shared access signature is sent over http; package azure refuses it but to this
// machine.
func (c *Config) clearSignature() bool {
	switch c.SourceAuth {
	case "sas":
		return strings.HasPrefix(strings.ToLower(c.SourceURL), "http://")
	case "connection_string":
		text := string(c.SourceConnectionString)
		endpoint := strings.ToLower(plain.ConnectionPart(text, "BlobEndpoint"))
		return plain.ConnectionPart(text, "SharedAccessSignature") != "" && strings.HasPrefix(endpoint, "http://")
	}
	return false
}
