//go:build integration

package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"blobfeed/integration/image"
	"blobfeed/integration/stack"
)

// nobody is the user of the image.
const nobody = 65532

// imageVersion is what the image is built with.
const imageVersion = "1.2.3"

// builtImage builds the image of a release.
func builtImage(t *testing.T) *image.Image {
	t.Helper()
	img, err := image.Build(t.Context(), "..", t.TempDir(), imageVersion)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := img.Close(); err != nil {
			t.Error(err)
		}
	})
	return img
}

func filesOf(t *testing.T, img *image.Image) []string {
	t.Helper()
	files, err := img.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The image of a release holds the program, licences and nothing else. It delivers from Azurite to Kafka over TLS, as a
// user without rights, with its secrets in files that only this user may read.
func TestImage(t *testing.T) {
	t.Parallel()
	img := builtImage(t)
	if files := filesOf(t, img); !slices.Equal(files, []string{"bridge", "licenses", "licenses/LICENSE",
		"licenses/THIRD_PARTY_NOTICES"}) {
		t.Errorf("the image holds %q", files)
	}
	packed, err := img.PackedSize(t.Context())
	if err != nil || packed > 25<<20 {
		t.Errorf("the compressed image: %d bytes, %v", packed, err)
	}
	t.Logf("size of the image: %.1f MB, %.1f MB compressed", float64(img.Size)/1e6, float64(packed)/1e6)
	if c := img.Config; c.User != "65532:65532" || c.ExposedPorts["8080/tcp"] == nil ||
		!slices.Equal(c.Healthcheck.Test, []string{"CMD", "/bridge", "healthcheck"}) ||
		c.Labels["org.opencontainers.image.version"] != imageVersion {
		t.Errorf("the image says %+v", c)
	}
	out, err := img.Command(t.Context(), nil, nil, "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "bridge "+imageVersion+" ") {
		t.Errorf("bridge version: %v\n%s", err, out)
	}
	if out, err := img.Exec(t.Context(), nil, nil, "/bin/sh").CombinedOutput(); !strings.Contains(string(out),
		"no such file or directory") {
		t.Errorf("the image has a shell: %v\n%s", err, out)
	}
	if p := launch(t, img.Command(t.Context(), nil, nil)); p.wait(t, time.Minute) != 78 {
		t.Errorf("without settings: %s", p.log)
	}
	deliverFrom(t, img, secureStack(t))
}

// deliverFrom runs the image over the real feed in Azurite.
func deliverFrom(t *testing.T, img *image.Image, s *stack.Stack) {
	t.Helper()
	dir := t.TempDir() // the same path within
	secret := func(name, value string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(value), 0o400); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		return path
	}
	name, topic := names(t, s.KafkaBrokers, 1)
	if err := s.Allow(t.Context(), aclsOf(t, "plain", name, topic)...); err != nil {
		t.Fatal(err)
	}
	settings := append(uploadFeed(t, realFeed), "NAME="+name, "TOPIC="+topic, "EVENTS=all",
		"KAFKA_BROKERS="+s.Security.Plain[0], "KAFKA_TLS_ENABLED=true", "KAFKA_SASL_MECHANISM=PLAIN",
		"KAFKA_SASL_USERNAME=plain", "KAFKA_SASL_PASSWORD_FILE="+secret("password", s.Security.PlainPassword))
	trusting := append(settings[:len(settings):len(settings)],
		"KAFKA_TLS_CA_FILE="+secret("ca.pem", string(s.Security.Authority.PEM)))
	checked(t, trusting, clean) // the program on its own, until the brokers know the ACLs
	run := func(code int, settings []string, args ...string) {
		t.Helper()
		env := []string{"BRIDGE_HTTP_ADDR=127.0.0.1:0"}
		for _, s := range settings {
			env = append(env, "BRIDGE_"+s)
		}
		p := launch(t, img.Command(t.Context(), env, []string{dir + ":" + dir}, args...), settings...)
		if got := p.wait(t, time.Minute); got != code {
			t.Errorf("bridge %q: exit code %d, want %d\n%s", args, got, code, p.log)
		}
	}
	run(1, settings, "check") // none of the authorities in the program has signed the broker's certificate
	before := filesOf(t, img) // with what was mounted
	run(0, trusting, "check")
	run(0, trusting, "run", "--once")
	run(0, trusting, "run", "--once")
	ids, _ := realIDs(t)
	if n := len(read(t, s.KafkaBrokers, topic)); n != len(ids)+realSegments*partitions {
		t.Errorf("%d records of %d events", n, len(ids))
	}
	if after := filesOf(t, img); !slices.Equal(before, after) {
		t.Errorf("the files are %q, were %q", after, before)
	}
}
