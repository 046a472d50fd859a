package stack

import (
	"strings"
	"testing"
)

func TestRender(t *testing.T) {
	v := settings{ID: 2, Port: 21000, ControllerPort: 21001, Voters: "1@a:1,2@b:2", Data: "/data dir", Replicas: 3,
		MinISR: 2, BrokerSession: 3000,
		Links: []Link{{"LINK0", "127.0.0.1:21002", "127.0.0.1:21003"}}}
	text, err := v.render(map[string]string{
		"min.insync.replicas":  "1",                // replaces
		"log.retention.ms":     "1000",             // adds
		"broker.rack":          `a\b`,              // is escaped
		"listener.name.x.jaas": "a=b required\nc;", // keeps what follows the first =
	})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if _, twice := got[name]; !ok || twice {
			t.Errorf("line %q: want one name=value of a name", line)
		}
		got[name] = value
	}
	for name, want := range map[string]string{
		"node.id":                                  "2",
		"listeners":                                "PLAINTEXT://127.0.0.1:21000,CONTROLLER://127.0.0.1:21001,LINK0://127.0.0.1:21002",
		"advertised.listeners":                     "PLAINTEXT://127.0.0.1:21000,LINK0://127.0.0.1:21003",
		"listener.security.protocol.map":           "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LINK0:PLAINTEXT",
		"controller.quorum.voters":                 "1@a:1,2@b:2",
		"log.dirs":                                 "/data dir",
		"default.replication.factor":               "3",
		"transaction.state.log.replication.factor": "3",
		"transaction.state.log.min.isr":            "2",
		"broker.session.timeout.ms":                "3000",
		"auto.create.topics.enable":                "false",
		"group.min.session.timeout.ms":             "500",
		"min.insync.replicas":                      "1",
		"log.retention.ms":                         "1000",
		"broker.rack":                              `a\\b`,
		"listener.name.x.jaas":                     `a=b required\nc;`,
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}
