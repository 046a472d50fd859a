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

// The image of a release and the one from source hold the program and licences and nothing else, and run as nobody.
// integration/image builds and runs the former.
func TestDockerfile(t *testing.T) {
	mod := read(t, "../go.mod")
	goVersion := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(mod)[1]
	if !regexp.MustCompile(`\nARG GO_IMAGE=golang:` + regexp.QuoteMeta(goVersion) + `\.\d+@sha256:[0-9a-f]{64}\n`).
		MatchString(read(t, "../Dockerfile")) {
		t.Errorf("the program is not built in an image of Go %s that is named by digest", goVersion)
	}
	all := stages(t, "../Dockerfile")
	if len(all) != 4 {
		t.Fatalf("%d stages: want base, release, build and the image from source", len(all))
	}
	base, release, build, source := all[0], all[1], all[2], all[3]
	if base.from != "scratch AS base" || release.from != "base AS release" || source.from != "base" ||
		build.from != "--platform=$BUILDPLATFORM $GO_IMAGE AS build" {
		t.Errorf("the stages are made of %q, %q, %q and %q", base.from, release.from, build.from, source.from)
	}
	for _, want := range []string{"USER 65532:65532", `ENTRYPOINT ["/bridge"]`, `CMD ["run"]`, "EXPOSE 8080",
		"COPY LICENSE THIRD_PARTY_NOTICES /licenses/",
		`HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["/bridge", "healthcheck"]`} {
		if !slices.Contains(base.lines, want) {
			t.Errorf("the image has no %s", want)
		}
	}
	for _, label := range []string{"title", "description", "licenses", "version", "revision", "created"} {
		if !strings.Contains(strings.Join(base.lines, "\n"), "org.opencontainers.image."+label+"=") {
			t.Errorf("the image has no label %s", label)
		}
	}
	for _, line := range base.lines {
		if word, _, _ := strings.Cut(line, " "); slices.Contains([]string{"RUN", "ADD", "VOLUME", "SHELL"}, word) {
			t.Errorf("the image has %s", line)
		}
	}
	want := []string{"ARG TARGETPLATFORM", "COPY $TARGETPLATFORM/bridge /bridge"}
	if !slices.Equal(release.lines, want) {
		t.Errorf("a release adds %q to the image", release.lines)
	}
	if want := []string{"COPY --from=build /bridge /bridge"}; !slices.Equal(source.lines, want) {
		t.Errorf("a build from source adds %q to the image", source.lines)
	}
	if lines := strings.Join(build.lines, "\n"); !strings.Contains(lines, "CGO_ENABLED=0") ||
		!strings.Contains(lines, "-trimpath") || !strings.Contains(lines, "main.version=$VERSION") {
		t.Errorf("the program is built by\n%s", lines)
	}
}

// Images of others are named by digest. Of one no digest could be confirmed.
func TestImagesHaveDigests(t *testing.T) {
	images := regexp.MustCompile(`\n +image: (\S+)`).FindAllStringSubmatch(read(t, "../docker-compose.yaml"), -1)
	if len(images) != 4 {
		t.Errorf("%d images", len(images))
	}
	for _, image := range images {
		if !regexp.MustCompile(`:[\d.]+@sha256:[0-9a-f]{64}$`).MatchString(image[1]) &&
			!strings.HasPrefix(image[1], "apicurio/") {
			t.Errorf("%s has no digest", image[1])
		}
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
