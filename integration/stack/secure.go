package stack

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/integration/pki"
)

// Security are the listeners of a secure stack, one for each way to authenticate, and what opens them. KafkaBrokers are
// the plaintext ones, where everybody is an administrator. Nobody else may do anything until there is an ACL.
type Security struct {
	Scram, Plain, MTLS, OAuth []string // addresses, by node; all but OAuth encrypted, that with unsigned tokens
	CAFile                    string
	Authority                 *pki.Authority // of CAFile; a client certificate's CN is the user
	PlainUser, PlainPassword  string         // the only one on Plain
}

// secureListeners are names in server.properties, in the order of the ports.
var secureListeners = []string{"SCRAM", "PLAIN", "MTLS", "OAUTH"}

// secure returns the properties of a node that add the listeners.
func (s *Stack) secure(v settings, free []int) map[string]string {
	listeners := fmt.Sprintf("PLAINTEXT://%s", address(v.Port))
	for i, name := range secureListeners {
		listeners += fmt.Sprintf(",%s://%s", name, address(free[i]))
	}
	sec := s.Security
	for i, addrs := range []*[]string{&sec.Scram, &sec.Plain, &sec.MTLS, &sec.OAuth} {
		*addrs = append(*addrs, address(free[i]))
	}
	const modules = "org.apache.kafka.common.security."
	return map[string]string{
		"listeners":            listeners + ",CONTROLLER://" + address(v.ControllerPort),
		"advertised.listeners": listeners,
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SCRAM:SASL_SSL," +
			"PLAIN:SASL_SSL,MTLS:SSL,OAUTH:SASL_PLAINTEXT",
		"ssl.keystore.type": "PEM", "ssl.keystore.location": filepath.Join(s.dir, "server.pem"),
		"ssl.truststore.type": "PEM", "ssl.truststore.location": sec.CAFile,
		"listener.name.mtls.ssl.client.auth":                 "required",
		"ssl.principal.mapping.rules":                        "RULE:^CN=(.*?)(,.*)?$/$1/,DEFAULT",
		"listener.name.scram.sasl.enabled.mechanisms":        "SCRAM-SHA-256,SCRAM-SHA-512",
		"listener.name.scram.scram-sha-256.sasl.jaas.config": modules + "scram.ScramLoginModule required;",
		"listener.name.scram.scram-sha-512.sasl.jaas.config": modules + "scram.ScramLoginModule required;",
		"listener.name.plain.sasl.enabled.mechanisms":        "PLAIN",
		"listener.name.plain.plain.sasl.jaas.config": fmt.Sprintf(
			`%splain.PlainLoginModule required user_%s="%s";`, modules, sec.PlainUser, sec.PlainPassword),
		"listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
		"listener.name.oauth.oauthbearer.sasl.jaas.config": modules +
			`oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";`,
		"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users":           "User:ANONYMOUS",
	}
}

// makeKeys writes the authority's and the brokers' certificates, made anew for each stack.
func (s *Stack) makeKeys() error {
	a, err := pki.New("stack")
	if err != nil {
		return err
	}
	server, err := a.Issue("kafka", 24*time.Hour)
	if err != nil {
		return err
	}
	s.Security = &Security{Authority: a, CAFile: filepath.Join(s.dir, "ca.pem"), PlainUser: "plain",
		PlainPassword: rand.Text()}
	for name, text := range map[string][]byte{"ca.pem": a.PEM, "server.pem": append(server.Key, server.Cert...)} {
		if err := os.WriteFile(filepath.Join(s.dir, name), text, 0o600); err != nil {
			return fmt.Errorf("writing the brokers' certificates: %w", err)
		}
	}
	return nil
}

// SetPassword gives a user a new password for SCRAM, and makes the user if there is none. The brokers take it
// some moments later.
func (s *Stack) SetPassword(ctx context.Context, user, password string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.KafkaBrokers...))
	if err != nil {
		return err
	}
	defer cl.Close()
	// the brokers take one of a user at a time
	for _, m := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} {
		altered, err := kadm.NewClient(cl).AlterUserSCRAMs(ctx, nil,
			[]kadm.UpsertSCRAM{{User: user, Mechanism: m, Iterations: 4096, Password: password}})
		if err == nil {
			err = altered.Error()
		}
		if err != nil {
			return fmt.Errorf("setting the password of %s: %w", user, err)
		}
	}
	return nil
}

// Allow adds ACLs such as "User:x Write topic name" and "User:x Write transactional-id prefix*". The brokers know them
// some moments later.
func (s *Stack) Allow(ctx context.Context, lines ...string) error { return s.acls(ctx, true, lines) }

// Disallow removes ACLs.
func (s *Stack) Disallow(ctx context.Context, lines ...string) error {
	return s.acls(ctx, false, lines)
}

func (s *Stack) acls(ctx context.Context, add bool, lines []string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.KafkaBrokers...))
	if err != nil {
		return err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	for _, line := range lines {
		b, err := aclOf(line)
		if err != nil {
			return err
		}
		if !add {
			deleted, err := adm.DeleteACLs(ctx, b)
			if err != nil || len(deleted) != 1 || deleted[0].Err != nil || len(deleted[0].Deleted) != 1 {
				return fmt.Errorf("removing the ACL %q: %v, %w", line, deleted, err)
			}
			continue
		}
		created, err := adm.CreateACLs(ctx, b)
		if err != nil || len(created) != 1 || created[0].Err != nil {
			return fmt.Errorf("adding the ACL %q: %v, %w", line, created, err)
		}
	}
	return nil
}

func aclOf(line string) (*kadm.ACLBuilder, error) {
	words := strings.Fields(line)
	if len(words) != 4 {
		return nil, fmt.Errorf("%q is no ACL: want a principal, an operation, a kind of resource, a name", line)
	}
	op, err := kmsg.ParseACLOperation(words[1])
	if err != nil {
		return nil, fmt.Errorf("operation of the ACL %q: %w", line, err)
	}
	name, pattern := words[3], kadm.ACLPatternLiteral
	if prefix, ok := strings.CutSuffix(name, "*"); ok {
		name, pattern = prefix, kadm.ACLPatternPrefixed
	}
	b := kadm.NewACLs().Allow(words[0]).AllowHosts("*").Operations(op).ResourcePatternType(pattern)
	switch words[2] {
	case "topic":
		return b.Topics(name), nil
	case "group":
		return b.Groups(name), nil
	case "transactional-id":
		return b.TransactionalIDs(name), nil
	}
	return nil, fmt.Errorf("%q: want topic, group or transactional-id", line)
}
