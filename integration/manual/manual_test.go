package manual

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"blobfeed/internal/config"
)

const root = "../.."

// Every block of commands is in the table, and every entry of the table has one block.
func TestUses(t *testing.T) {
	blocks, err := Blocks(root)
	if err != nil {
		t.Fatal(err)
	}
	used := make([]int, len(Uses))
	for _, b := range blocks {
		if b.Unmarked() {
			t.Errorf("%s has commands or settings: mark it sh or env", b)
		}
		if b.Commands() == "" {
			continue
		}
		if i := Of(b); i < 0 {
			t.Errorf("%s: no entry in Uses says how its commands are tried", b)
		} else {
			used[i]++
		}
	}
	for i, n := range used {
		if n != 1 {
			t.Errorf("%s, %q: %d blocks, want 1", Uses[i].Page, Uses[i].Begins, n)
		}
	}
}

func TestParse(t *testing.T) {
	blocks, err := parse(
		"p",
		"a\n```sh\nx # y\n```\n```\n$ one\nsays\n$ two\n```\n```env\nA=1   # why\nB=2\n```\n```text\nbridge run\n```\n",
	)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range blocks {
		got = append(got, b.String(), b.Commands(), strings.Join(b.Settings(), ","))
	}
	want := []string{"p:2", "x # y\n", "", "p:5", "one\ntwo\n", "", "p:10", "", "A=1,B=2", "p:14", "", ""}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q, want %q", got, want)
	}
	for i, want := range []bool{false, false, false, true} {
		if blocks[i].Unmarked() != want {
			t.Errorf("%s: unmarked %t", blocks[i], !want)
		}
	}
	if _, err := parse("p", "```sh\nx\n"); err == nil {
		t.Error("a block without an end passes")
	}
}

var (
	variable = regexp.MustCompile(`BRIDGE_[A-Z0-9_]*[A-Z0-9]\b`)
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped  = regexp.MustCompile("[^a-z0-9 _-]")
)

// The manual names no setting that there is not, and no page or section.
func TestNames(t *testing.T) {
	reference := read(t, "docs/configuration.md")
	known := map[string]bool{"BRIDGE_DEBUG": true} // for tests: in CONTRIBUTING.md alone
	for _, name := range variable.FindAllString(reference, -1) {
		known[name] = true
	}
	for _, name := range config.SecretNames() {
		known[name+"_FILE"] = true
	}
	pages, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(pages, filepath.Join(root, "CONTRIBUTING.md"), filepath.Join(root, "examples", "README.md"),
		filepath.Join(root, "deploy", "README.md")) {
		page, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		text := read(t, page)
		for _, name := range variable.FindAllString(text, -1) {
			if !known[name] {
				t.Errorf("%s: there is no setting %s", page, name)
			}
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.HasPrefix(m[1], "http") {
				continue
			}
			to, section, _ := strings.Cut(m[1], "#")
			target := page
			if to != "" {
				target = filepath.Join(filepath.Dir(page), to)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: link to %s: %v", page, m[1], err)
			} else if section != "" && !sections(read(t, target))[section] {
				t.Errorf("%s: there is no section %s", page, m[1])
			}
		}
	}
}

// sections are the anchors of a page's headings.
func sections(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		all[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return all
}

func read(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	inline = regexp.MustCompile("`bridge ([a-z]+)([^`]*)`")
	called = regexp.MustCompile(`(?m)\bbridge ([a-z]+)([^|;&#\n]*)`)
	flag   = regexp.MustCompile(`--[a-z][-a-z]*`)
)

// A verb or flag that the manual names in passing is one of docs/cli.md, which a test of the program compares with the
// code.
func TestVerbs(t *testing.T) {
	verbs := map[string]string{} // what cli.md says of each
	for section := range strings.SplitSeq(read(t, "docs/cli.md"), "\n## ") {
		name, text, _ := strings.Cut(section, "\n")
		verbs[name] = text
	}
	pages, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	check := func(page, verb, rest string) {
		found++
		text, ok := verbs[verb]
		if !ok {
			t.Errorf("%s: there is no verb %s", page, verb)
		}
		for _, f := range flag.FindAllString(rest, -1) {
			if f != "--help" && f != "--config" && !strings.Contains(text, f) {
				t.Errorf("%s: bridge %s has no %s", page, verb, f)
			}
		}
	}
	for _, file := range append(pages, filepath.Join(root, "deploy", "README.md")) {
		page, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range inline.FindAllStringSubmatch(read(t, page), -1) {
			check(page, m[1], m[2])
		}
	}
	blocks, err := Blocks(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		for _, m := range called.FindAllStringSubmatch(b.Commands(), -1) {
			check(b.String(), m[1], m[2])
		}
	}
	if found < 40 {
		t.Errorf("found %d commands", found)
	}
}
