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
	if slices.ContainsFunc(c.KafkaBrokers, func(s string) bool { return strings.ContainsAny(s, "/@=;") }) {
		p.add("KAFKA_BROKERS", "want host:port, comma separated: no scheme, user or connection string")
	}
	if !topicName.MatchString(c.Name) {
		p.invalid("NAME", c.Name, "want letters, digits, '.', '_' and '-' only: it names a topic")
	}
	if words := c.Options.Included(); len(words) > 1 && slices.Contains(words, "none") {
		p.add("OPTIONS", "want none alone, or other words")
	}
	if c.InitialScan != "no" && c.InitialScan != "" && c.Start != "earliest" {
		p.add("START", "not with INITIAL_SCAN: the scan decides where the feed begins; leave START out")
	}
	c.validateSource(p)
	c.validateFilter(p)
	if kafka || len(c.KafkaBrokers) > 0 {
		c.validateSecurity(p)
	}
	c.validateRegistry(p, feed && kafka)
	c.validateHTTP(p)
	if least := c.CommitInterval + time.Second; c.TxnTimeout < least {
		p.add("TXN_TIMEOUT", "want at least %s, a second more than COMMIT_INTERVAL", least)
	}
	if c.Instance == "" {
		host, _ := os.Hostname() // without a name, the process id alone
		c.Instance = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
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
	if path, ok := strings.CutPrefix(c.SourceURL, "file://"); ok && !filepath.IsAbs(path) {
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
	likely := map[string]string{}
	for _, known := range eventTypes {
		likely[strings.ToLower(known)] = known
	}
	for _, written := range c.EventTypes {
		written = strings.TrimPrefix(written, not)
		lower := strings.TrimPrefix(strings.ToLower(written), "microsoft.storage.")
		if near := likely[Nearest(lower, slices.Collect(maps.Keys(likely)), 2)]; near != "" && near != written {
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
			p.add("REGISTRY_URL", "want no user and no query, which would be shown: "+
				"use REGISTRY_USERNAME and REGISTRY_PASSWORD")
		}
	}
	if c.RegistryUsername != "" && c.RegistryPassword == "" {
		p.add("REGISTRY_USERNAME", "set it together with REGISTRY_PASSWORD")
	}
	if (c.RegistryCertFile == "") != (c.RegistryKeyFile == "") {
		p.add("REGISTRY_CERT_FILE", "set it together with REGISTRY_KEY_FILE")
	}
}

func (c *Config) validateHTTP(p *problems) {
	if _, _, err := net.SplitHostPort(c.HTTPAddr); err != nil && c.HTTPAddr != "off" {
		p.invalid("HTTP_ADDR", c.HTTPAddr, "want [host]:port, or off")
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
}
