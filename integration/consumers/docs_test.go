package consumers

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	root = "../.."
	page = root + "/docs/consumers.md"
)

// fence is a block of code, with the comment before it that names the file it is from.
var fence = regexp.MustCompile("(?ms)^(?:<!-- (\\S+) -->\n)?```(\\w*)\n(.*?)^```$")

// The page shows what the tests run: every block of code is in its file, and the page shows or links every file that
// users copy.
func TestPage(t *testing.T) {
	text := read(t, page)
	shown := map[string]bool{}
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		file, language, block := m[1], m[2], m[3]
		switch {
		case file != "":
			shown[file] = true
			if want := excerpt(read(t, filepath.Join(root, file))); block != want {
				t.Errorf("the block of %s differs from the file, which has\n%s", file, want)
			}
		case language != "" && language != "sh" && language != "env": // env: the manual's test sets them
			t.Errorf("a block of %s does not name its file:\n%s", language, block)
		}
	}
	for _, pattern := range []string{"sql/*.sql", "connect/*", "src/main/java/*.java", "hours/example_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, f := range files {
			name := "integration/consumers/" + f
			copied := !strings.HasPrefix(f, "src/") || strings.Contains(read(t, f), begin)
			if copied && !shown[name] && !strings.Contains(text, "](../"+name+")") {
				t.Errorf("the page neither shows nor links %s", name)
			}
		}
	}
}

// The page names the versions that were run.
func TestVersions(t *testing.T) {
	text := read(t, page)
	versions := regexp.MustCompile(`<(\S+\.version)>(.+)</`).FindAllStringSubmatch(read(t, "pom.xml"), -1)
	if len(versions) < 3 {
		t.Fatalf("found %q in pom.xml", versions)
	}
	for _, v := range versions {
		if !strings.Contains(text, v[2]) {
			t.Errorf("the page does not name %s %s", v[1], v[2])
		}
	}
}

const begin, end = "// docs: begin\n", "// docs: end\n"

// excerpt returns what is between the lines begin and end, moved to the left, or all of a file that has none.
func excerpt(text string) string {
	_, rest, found := strings.Cut(text, begin)
	if !found {
		return text
	}
	rest, _, _ = strings.Cut(rest, end)
	rest = rest[:strings.LastIndexByte(rest, '\n')+1] // without the indent of end
	indent := rest[:len(rest)-len(strings.TrimLeft(rest, " \t"))]
	var b strings.Builder
	for line := range strings.Lines(rest) {
		b.WriteString(strings.TrimPrefix(line, indent))
	}
	return b.String()
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
