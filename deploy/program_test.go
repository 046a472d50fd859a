package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// program is the path of the program, built once as the Dockerfile builds it. PROGRAM names another one, such as that of
// an earlier commit, which should fail a test.
var program string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if program = os.Getenv("PROGRAM"); program != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "bridge-deploy")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "bridge")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=1.2.3", "-o", program,
		"blobfeed/cmd/bridge")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the program: %v\n%s", err, text)
		return 1
	}
	return m.Run()
}
