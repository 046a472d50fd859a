package chart

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The compose file has all parts, of pinned versions, waits for what must be up, and gives the bridge no rights.
func TestCompose(t *testing.T) {
	text, err := os.ReadFile("../../docker-compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type service struct {
		Image       string
		Build       string
		Ports       []string
		Environment map[string]any
		ReadOnly    bool                                  `json:"read_only"`
		CapDrop     []string                              `json:"cap_drop"`
		SecurityOpt []string                              `json:"security_opt"`
		DependsOn   map[string]struct{ Condition string } `json:"depends_on"`
		Healthcheck map[string]any
	}
	var compose struct{ Services map[string]service }
	if err := yaml.Unmarshal(text, &compose); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kafka", "registry", "azurite", "bridge", "consumer"} {
		s, ok := compose.Services[name]
		if !ok {
			t.Errorf("there is no %s", name)
		}
		if s.Build == "" && !regexp.MustCompile(`:\d+\.\d+`).MatchString(s.Image) {
			t.Errorf("%s: image %q is not pinned", name, s.Image)
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: port %s is open to the network", name, p)
			}
		}
		for on, how := range s.DependsOn {
			if how.Condition != "service_healthy" || compose.Services[on].Healthcheck == nil && on != "bridge" {
				t.Errorf("%s does not wait for %s", name, on)
			}
		}
	}
	for _, name := range []string{"bridge", "consumer"} {
		if s := compose.Services[name]; !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) ||
			!slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) {
			t.Errorf("%s may do more than it needs: %+v", name, s)
		}
	}
	reference, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range compose.Services["bridge"].Environment {
		if !strings.Contains(string(reference), "`"+name+"`") {
			t.Errorf("%s is no setting", name)
		}
	}
}

// The release's settings are one document, and name files that are there.
func TestRelease(t *testing.T) {
	text, err := os.ReadFile("../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Version int
		Builds  []struct {
			Main                     string
			Env, Goos, Goarch, Flags []string
		}
		SBOMs     []struct{ Artifacts string }
		Checksum  struct{ Algorithm string }
		DockersV2 []struct {
			Dockerfile string
			Platforms  []string
			SBOM       bool
			Flags      []string
			BuildArgs  map[string]string `json:"build_args"`
			ExtraFiles []string          `json:"extra_files"`
		} `json:"dockers_v2"`
		DockerSigns []struct {
			Artifacts string
			Args      []string
		} `json:"docker_signs"`
		Archives []struct{ Files []string }
		NFPMs    []struct{ Contents []struct{ Src string } }
	}
	if err := yaml.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if r.Version != 2 || len(r.Builds) != 1 || !slices.Contains(r.Builds[0].Env, "CGO_ENABLED=0") ||
		!slices.Contains(r.Builds[0].Flags, "-trimpath") ||
		!slices.Equal(r.Builds[0].Goarch, []string{"amd64", "arm64"}) || r.Checksum.Algorithm != "sha256" ||
		len(r.SBOMs) == 0 ||
		len(r.DockersV2) != 1 || !r.DockersV2[0].SBOM ||
		!slices.Equal(r.DockersV2[0].Platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("%+v", r)
	}
	dockerfile, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, s := range r.SBOMs {
		kinds[s.Artifacts] = true
	}
	image := r.DockersV2[0]
	if !kinds["archive"] || !kinds["package"] || !slices.Contains(image.Flags, "--provenance=mode=max") ||
		len(
			r.DockerSigns,
		) != 1 || r.DockerSigns[0].Artifacts != "all" ||
		!slices.Contains(r.DockerSigns[0].Args, "${artifact}@${digest}") ||
		!slices.Contains(image.Flags, "--target=release") || image.Dockerfile != "Dockerfile" ||
		len(image.BuildArgs) != 3 {
		t.Errorf("SBOMs of %v, image %+v, signatures %+v", kinds, image, r.DockerSigns)
	}
	for arg := range image.BuildArgs {
		if !strings.Contains(string(dockerfile), "\nARG "+arg+"=") {
			t.Errorf("the Dockerfile does not take %s", arg)
		}
	}
	packaged := []string{}
	for _, c := range r.NFPMs[0].Contents {
		packaged = append(packaged, c.Src)
	}
	for what, shipped := range map[string][]string{
		"the archives": r.Archives[0].Files, "the packages": packaged, "the image": image.ExtraFiles,
	} {
		for _, f := range []string{"LICENSE", "THIRD_PARTY_NOTICES"} {
			if !slices.Contains(shipped, f) {
				t.Errorf("%s: no %s", what, f)
			}
		}
	}
	files := []string{r.Builds[0].Main, r.DockersV2[0].Dockerfile, "LICENSE", "THIRD_PARTY_NOTICES", "SECURITY.md"}
	for _, n := range r.NFPMs {
		for _, c := range n.Contents {
			files = append(files, c.Src)
		}
	}
	for _, f := range files {
		if _, err := os.Stat("../../" + f); err != nil {
			t.Error(err)
		}
	}
}
