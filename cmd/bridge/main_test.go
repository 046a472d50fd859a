package main

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"blobfeed/internal/ops"
)

const chunk = "../../testdata/real-2020/log/00/2020/05/27/1500/00000.avro"

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]struct {
		code int
		says string
	}{
		"":                            {exitUsage, "usage"},
		"help":                        {exitOK, "demo"},
		"version":                     {exitOK, "bridge "},
		"--version":                   {exitOK, "bridge "},
		"find photos":                 {exitUsage, "want a container and a path in it"},
		"dump photos/cat.jpg":         {exitUsage, "use bridge find"},
		"help status":                 {exitOK, "usage: bridge status"},
		"help stauts":                 {exitUsage, "did you mean status?"},
		"stauts":                      {exitUsage, "did you mean status?"},
		"status --watch 1":            {exitUsage, "for flag --watch: want a duration such as 2s"},
		"run --once=perhaps":          {exitUsage, `invalid boolean value "perhaps" for --once: want true or false; see`},
		"start":                       {exitUsage, "did you mean run?"},
		"serve":                       {exitUsage, "did you mean run?"},
		"stat":                        {exitUsage, "did you mean status?"}, // scan differs less
		"lag":                         {exitUsage, "did you mean status?"},
		"tail --from erliest":         {exitUsage, "--from: \"erliest\" is no place in the feed; did you mean earliest?"},
		"tail --from latst":           {exitUsage, "did you mean latest?"},
		"tail --from today":           {exitUsage, "nor earliest, nor latest"},
		"find a/b --from erliest":     {exitUsage, "did you mean earliest?"},
		"seek --to ealiest":           {exitUsage, "did you mean earliest?"},
		"dump --segment 2020-05-27":   {exitUsage, "want YYYY/MM/DD/HHMM, as in 2026/01/31/1200; bridge dump lists"},
		"stop":                        {exitUsage, "press Ctrl-C where run runs, or send its process SIGTERM"},
		"--config x status":           {exitUsage, "the verb comes first"},
		"fly":                         {exitUsage, `unknown verb "fly"`},
		"run --fast":                  {exitUsage, "unknown flag --fast; see bridge run --help"},
		"run --oncee":                 {exitUsage, "unknown flag --oncee (did you mean --once?); see bridge run --help"},
		"seek --to":                   {exitUsage, "--to needs a value; see bridge seek --help"},
		"run --help":                  {exitOK, "BRIDGE_SOURCE_URL"},
		"verify --help":               {exitOK, "4 a promise is broken"},
		"run":                         {exitSettings, "BRIDGE_KAFKA_BROKERS: required"},
		"config --format odt":         {exitUsage, "odt"},
		"metrics --format odt":        {exitUsage, "odt"},
		"metrics":                     {exitOK, "blobfeed_lag_seconds{part} gauge"},
		"dump --output xml":           {exitUsage, "xml"},
		"dump nosuch.avro":            {exitFailed, "nosuch.avro"},
		"dump":                        {exitSettings, "BRIDGE_SOURCE_URL"},
		"dump --segment x":            {exitUsage, "YYYY/MM/DD/HHMM"},
		"tail --from 2200-01-01":      {exitUsage, "--from: 2200-01-01 is in the future"},
		"tail --from 2200/01/01/0000": {exitUsage, "is in the future"},
		"dump --at 12":                {exitUsage, "want an offset and a chunk"},
		"dump 2020/05/27/1500":        {exitUsage, "use --segment 2020/05/27/1500"},
		"dump --state":                {exitSettings, "BRIDGE_KAFKA_BROKERS"},
		"check":                       {exitSettings, "BRIDGE_SOURCE_URL"},
		"healthcheck --wide":          {exitUsage, "unknown flag --wide"},
		"dump " + chunk:               {exitOK, "BlobCreated"},
		"dump --at 9999 " + chunk:     {exitOK, ""},
		"dump --at 2435 " + chunk:     {exitFailed, "no block begins at offset 2435; blocks near it begin at 2434"},
		// Flags stand where they like, and nothing is left over.
		"dump " + chunk + " --at 2435": {exitFailed, "no block begins at offset 2435"},
		"dump " + chunk + " more":      {exitUsage, `unexpected argument "more"`},
		"dump --state " + chunk:        {exitUsage, "exclude each other"},
		"dump --state --at 12":         {exitUsage, "exclude each other"},
		"dump --state --segment x":     {exitUsage, "exclude each other"},
		"dump --segment x " + chunk:    {exitUsage, "exclude each other"},
		"run once":                     {exitUsage, `unexpected argument "once"; see bridge run --help`},
		"run now --fast":               {exitUsage, `unexpected argument "now"`},
		"check now --output json":      {exitUsage, `unexpected argument "now"`},
		"config now":                   {exitUsage, `unexpected argument "now"`},
		"config --output xml":          {exitUsage, "xml"},
		"demo now":                     {exitUsage, `unexpected argument "now"`},
		"healthcheck now":              {exitUsage, `unexpected argument "now"`},
		"metrics now":                  {exitUsage, `unexpected argument "now"`},
		"status now":                   {exitUsage, `unexpected argument "now"`},
		"version now":                  {exitUsage, `unexpected argument "now"`},
	} {
		code, stdout, stderr := call(t, strings.Fields(args)...)
		if code != want.code || !strings.Contains(stdout+stderr, want.says) {
			t.Errorf("bridge %s: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
}

// Help goes to stdout when it is asked for. A mistake is one line that says where the help is.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, v := range verbs() {
		if code, stdout, stderr := call(t, v.name, "--help"); code != exitOK || stderr != "" ||
			!strings.HasPrefix(stdout, "usage: bridge "+v.name) {
			t.Errorf("%s --help: exit code %d, stderr %q: %s", v.name, code, stderr, stdout)
		}
		code, stdout, stderr := call(t, v.name, "--nosuch")
		if code != exitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 ||
			!strings.HasSuffix(stderr, "; see bridge "+v.name+" --help\n") {
			t.Errorf("%s --nosuch: exit code %d, stdout %q: %s", v.name, code, stdout, stderr)
		}
	}
}

func TestDumpFeed(t *testing.T) {
	t.Parallel()
	setenv(t, "BRIDGE_SOURCE_URL", "file://"+abs(t, "../../testdata/real-2020"))
	code, stdout, stderr := call(t, "dump", "--output", "json")
	if lines := strings.Count(stdout, "\n"); code != 0 || lines != 10 {
		t.Fatalf("exit code %d, %d segments: %s", code, lines, stderr)
	}
	code, stdout, stderr = call(t, "dump", "--segment", "2020/05/27/1500", "--output", "json")
	var doc struct {
		Position string
		Offset   int64
		Event    struct {
			ID string `json:"event_id"`
		}
	}
	if err := json.NewDecoder(strings.NewReader(stdout)).Decode(&doc); err != nil || code != 0 || doc.Offset != 2434 ||
		doc.Position != "2020/05/27/1500/00/00000/2434/0" || doc.Event.ID == "" {
		t.Errorf("exit code %d, %+v, %v: %s", code, doc, err, stderr)
	}
	// A position that is printed can be given back.
	_, stdout, _ = call(t, "dump", "--segment", "2020/05/27/1500")
	for line := range strings.Lines(stdout) {
		position, _, _ := strings.Cut(line, " ")
		if code, again, stderr := call(t, "dump", "--at", position); code != 0 || again != line {
			t.Errorf("dump --at %s: exit code %d: %s%s, want %s", position, code, again, stderr, line)
		}
	}
}

// What a record's position names is the event it was made of.
func TestDumpPosition(t *testing.T) {
	t.Parallel()
	setenv(t, "BRIDGE_SOURCE_URL", "file://"+abs(t, "../../testdata/real-2020"))
	for args, says := range map[string]string{
		"dump --at 2020/05/27/1500/00/00000/2434/1":        "test-blob-ded10496",
		"dump log/00/2020/05/27/1500/00000.avro":           "test-blob-ded10496",
		"dump --at 2434 log/00/2020/05/27/1500/00000.avro": "test-blob-ded10496",
	} {
		if code, stdout, stderr := call(t, strings.Fields(args)...); code != 0 || !strings.Contains(stdout, says) {
			t.Errorf("%s: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
	for args, says := range map[string]string{
		"dump --at 2020/05/27/1500/00/00000/2434/9": "the block at offset 2434 has 2",
		"dump --at 2020/05/27/1500/00/00000/2435/1": "offset 2435",
		"dump log/00/2020/05/27/1500/00009.avro":    "00009.avro",
		"dump --at 2021/05/27/1500/00/00000/2434/9": "no segment 2021/05/27/1500",
		"dump --segment 2021/05/27/1500":            "no segment 2021/05/27/1500: bridge dump lists",
	} {
		if code, stdout, stderr := call(t, strings.Fields(args)...); code != exitFailed ||
			!strings.Contains(stderr, says) {
			t.Errorf("%s: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
}

// The demo shows records and markers that went through the whole path and its status page, and ends with a verdict.
func TestDemo(t *testing.T) {
	t.Parallel()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	setenv(t, httpAddr, free.Addr().String())
	free.Close()
	var out, errs safeBuffer
	ended := make(chan int, 1)
	go func() {
		ended <- execute(t.Context(), environ(t), []string{"demo", "--port", "0", "--for", "4s"}, &out, &errs)
	}()
	address := regexp.MustCompile(`status page is at (http://\S+)`)
	await(t, "the address of the status page", func() bool { return address.MatchString(out.String()) })
	if want := "http://" + free.Addr().String(); address.FindStringSubmatch(out.String())[1] != want {
		t.Errorf("the status page is not at %s: %s", want, out.String())
	}
	answer, err := http.Get(address.FindStringSubmatch(out.String())[1] + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if s := new(ops.Status); json.NewDecoder(answer.Body).Decode(s) != nil || s.Name != "demo" {
		t.Errorf("the status page is of %q", s.Name)
	}
	await(t, "a sample for the charts", func() bool {
		_, body := get(t, address.FindStringSubmatch(out.String())[1]+"/history")
		return strings.Contains(body, `"verdict":["`)
	})
	code, stdout := <-ended, out.String()
	for _, want := range []string{
		"kcat -C -b 127.0.0.1:", `value  {"after": {"account": "demo"`, `resolved    {"resolved":"`, " events/s).",
		"BRIDGE_NAME=demo " + os.Args[0] + " status", "holds        replay",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not shown", want)
		}
	}
	if code != 0 {
		t.Errorf("exit code %d: %s%s", code, stdout, errs.String())
	}
}

// The manual has every verb, and every flag of it.
func TestManual(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range verbs() {
		_, section, ok := strings.Cut(string(text), "\n## "+v.name+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !ok {
			t.Errorf("docs/cli.md does not have %s", v.name)
		}
		_, usage, _ := call(t, v.name, "--help")
		for _, flag := range regexp.MustCompile(`(?m)^  -([a-z]+)`).FindAllStringSubmatch(usage, -1) {
			if flag[1] == "config" && strings.Contains(string(text), "`--config FILE`") {
				continue // said once of all verbs
			}
			if !strings.Contains(section, "--"+flag[1]) {
				t.Errorf("docs/cli.md: %s does not have --%s", v.name, flag[1])
			}
		}
	}
}
