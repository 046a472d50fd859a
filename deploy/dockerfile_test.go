package deploy

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// stage is a part of a Dockerfile: its instructions, in order, lines joined.
type stage struct {
	from  string
	lines []string
}

func stages(t *testing.T, name string) (all []stage) {
	t.Helper()
	joined := strings.ReplaceAll(read(t, name), "\\\n", " ")
	for line := range strings.Lines(joined) {
		line = strings.Join(strings.Fields(line), " ")
		switch {
		case line == "" || line[0] == '#' || len(all) == 0 && strings.HasPrefix(line, "ARG "):
		case strings.HasPrefix(line, "FROM "):
			all = append(all, stage{from: strings.TrimPrefix(line, "FROM ")})
		default:
			last := &all[len(all)-1]
			last.lines = append(last.lines, line)
		}
	}
	return all
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The images hold the program and certificates and nothing else, and run as nobody.
func TestDockerfiles(t *testing.T) {
	goVersion := ""
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if m := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod); m != nil {
		goVersion = string(m[1])
	}
	for _, name := range []string{"../Dockerfile", "docker/Dockerfile.release"} {
		all := stages(t, name)
		last := all[len(all)-1]
		if last.from != "scratch" {
			t.Errorf("%s: the image is made of %s", name, last.from)
		}
		copied := 0
		for _, line := range last.lines {
			if strings.HasPrefix(line, "RUN ") || strings.HasPrefix(line, "ADD ") ||
				strings.HasPrefix(line, "VOLUME ") ||
				strings.HasPrefix(line, "SHELL ") {
				t.Errorf("%s: %s", name, line)
			}
			if strings.HasPrefix(line, "COPY ") {
				copied++
			}
		}
		for _, want := range []string{"USER 65532:65532", `ENTRYPOINT ["/bridge"]`, `CMD ["run"]`, "EXPOSE 8080",
			`HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["/bridge", "healthcheck"]`} {
			if !slices.Contains(last.lines, want) {
				t.Errorf("%s has no %s", name, want)
			}
		}
		if copied != 3 || !slices.Contains(last.lines, "COPY LICENSE THIRD_PARTY_NOTICES /licenses/") {
			t.Errorf("%s copies %d things: want certificates, program and licences", name, copied)
		}
		args := map[string]string{} // those before the first stage
		for _, m := range regexp.MustCompile(`(?m)^ARG (\w+_IMAGE)=(\S+)$`).FindAllStringSubmatch(read(t, name), -1) {
			args["$"+m[1]] = m[2]
		}
		for _, s := range all[:len(all)-1] {
			image, ok := args[strings.Fields(strings.TrimPrefix(s.from, "--platform=$BUILDPLATFORM "))[0]]
			if !ok {
				t.Errorf("%s: a release can't pin the digest of %s", name, s.from)
			}
			if !strings.Contains(image, ":") || strings.HasSuffix(image, ":latest") {
				t.Errorf("%s: %s is not pinned", name, image)
			}
			if v, ok := strings.CutPrefix(image, "golang:"); ok && v != goVersion {
				t.Errorf("%s builds with Go %s, go.mod says %s", name, v, goVersion)
			}
		}
	}
	own := stages(t, "../Dockerfile")
	labels := strings.Join(own[len(own)-1].lines, "\n")
	release, err := os.ReadFile("../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, label := range []string{"title", "description", "licenses", "version", "revision", "created"} {
		label = "org.opencontainers.image." + label
		if !strings.Contains(labels, label+"=") || !strings.Contains(string(release), label+":") {
			t.Errorf("the images have no label %s", label)
		}
	}
	if build := strings.Join(own[0].lines, "\n"); !strings.Contains(build, "CGO_ENABLED=0") ||
		!strings.Contains(build, "-trimpath") ||
		!strings.Contains(build, "main.version=$VERSION") {
		t.Errorf("the program is built by\n%s", build)
	}
}

// What is left out of the build's context is not what the build reads: it copies go.mod and every package of
// the program.
func TestDockerignore(t *testing.T) {
	text, err := os.ReadFile("../.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for _, needed := range []string{
		"go.mod", "go.sum", "cmd", "bridge", "envelope", "internal", "offsets", "partitioner", "resolved", "source",
		"verify",
	} {
		if slices.Contains(lines, needed) {
			t.Errorf("%s is left out", needed)
		}
	}
	for _, secret := range []string{".git", ".env"} {
		if !slices.Contains(lines, secret) {
			t.Errorf("%s gets into the build", secret)
		}
	}
}
