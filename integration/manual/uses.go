package manual

import "strings"

// Use says how a block of commands is tried.
type Use struct {
	Page   string
	Begins string   // its first line does
	Skip   string   // why it is not run here
	Until  string   // it does not end: it is interrupted when its output has this
	Code   int      // its exit code, if it ends
	Says   []string // these are in its output
	Not    []string // these are not
}

// Of returns the index of a block's entry, or -1.
func Of(b Block) int {
	for i, u := range Uses {
		if u.Page == b.Page && strings.HasPrefix(b.Commands(), u.Begins) {
			return i
		}
	}
	return -1
}

const holds = "holds        replay"

// Uses has every block of commands, in the order in which they are run.
var Uses = []Use{
	{Page: "docs/quickstart.md", Begins: "make build", Says: []string{"bridge "}},
	{Page: "docs/quickstart.md", Begins: "bridge demo", Until: "  resolved  "},
	{Page: "docs/quickstart.md", Begins: "export KAFKA_BROKERS=",
		Skip: "the addresses are those of the test's own stack"},
	{Page: "docs/quickstart.md", Begins: "export BRIDGE_SOURCE_URL=file://$PWD/testdata/real-2020\n",
		Says: []string{"transactions are available", `"events":717,"records":713`}},
	{Page: "docs/quickstart.md", Begins: "bridge run --once\nbridge status", Says: []string{`"events":0,"records":0`,
		"717 read, 713 records"}},
	{Page: "docs/quickstart.md", Begins: "kcat ", Says: []string{`{"after": {"account": "seanchangefeed"`}},
	{Page: "docs/quickstart.md", Begins: "bridge dump --at 2020/05/29/1600/00/00000/2434/8",
		Says: []string{"2020-05-29T16:59:41.1986109Z"}}, // the record in events.md
	{Page: "docs/quickstart.md", Begins: "bridge verify --feed", Says: []string{holds}},
	{Page: "docs/quickstart.md", Begins: "export BRIDGE_REGISTRY_URL=", Says: []string{`"events":717,"records":713`,
		holds, `"blob-changes-avro-value"`}},
	{Page: "docs/quickstart.md", Begins: "large=", Says: []string{"catching up: segment ", holds},
		Not: []string{`"msg":"stopped","events":0,`, `"msg":"stopped","events":300000,`}}, // it is killed in the middle
	{Page: "docs/quickstart.md", Begins: "export BRIDGE_NAME=blobfeed BRIDGE_TOPIC=blob-changes\n",
		Says: []string{`"ready":true`, `"msg":"stopped"`}},
	{Page: "docs/quickstart.md", Begins: "damaged=", Code: 1, Says: []string{"2020/05/27/1500/00000.avro, offset"}},
	{Page: "docs/quickstart.md", Begins: "BRIDGE_ON_ERROR=dead_letter", Says: []string{"sent to the dead-letter topic",
		"position=2020/05/27/1500/00/00000/2434/0", "1 damaged place of 1,342 bytes", holds}},
	{Page: "docs/quickstart.md", Begins: "export BRIDGE_SOURCE_URL=file://$PWD/testdata/real-2020 BRIDGE_NAME",
		Says: []string{"(TLS", `"events":0,"records":0`}},
	{Page: "docs/azure.md", Begins: "az storage", Skip: "there is no account"},
	{Page: "docs/azure.md", Begins: "az role", Skip: "there is no account"},
	{Page: "docs/azure.md", Begins: "bridge check", Skip: "there is no account"},
	{Page: "docs/azure.md", Begins: "bridge run", Skip: "there is no account"},
	{Page: "docs/azure.md", Begins: "bridge find", Skip: "there is no account"},

	{Page: "README.md", Begins: "make demo", Until: "  resolved  "},
	{Page: "README.md", Begins: "make test", Skip: "these tests run beside it"},
	{Page: "README.md", Begins: "make build", Says: []string{"transactions are available", `"msg":"stopped"`}},

	{Page: "docs/consumers.md", Begins: "cd integration/consumers",
		Skip: "the jobs need feeds of their own: TestConsumers runs them"},
	{Page: "docs/consumers.md", Begins: "export JDK_JAVA_OPTIONS",
		Skip: "TestConsumers runs the jobs, with these options"},

	{Page: "docs/cli.md", Begins: "bridge tail", Says: []string{`{"topic":"blob-changes"`}},
	{Page: "docs/cli.md", Begins: "bridge check", Says: []string{"ok       reach"}},
	{Page: "docs/cli.md", Begins: "bridge status", Says: []string{"717 read, 713 records"}},
	{Page: "docs/cli.md", Begins: "bridge find",
		Says: []string{"BlobCreated  container0/blob0", "record    topic blob-changes"}},
	{Page: "docs/cli.md", Begins: "bridge seek", Says: []string{"nothing changed; add --yes"}},
	{Page: "docs/cli.md", Begins: "bridge replay", Says: []string{"topic again has the events", "445 records came"}},
	{Page: "docs/cli.md", Begins: "bridge dump", Says: []string{"2020/05/27/1500  finalized  1h0m0s  shards 0"}},
	{Page: "docs/cli.md", Begins: "bridge version", Says: []string{"bridge "}},
}
