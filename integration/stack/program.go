package stack

import (
	"fmt"
	"os/exec"
)

// Build builds the program under test as the file out, with build tags or "".
func Build(out, tags string) error {
	build := exec.Command("go", "build", "-o", out, "-tags", tags, "blobfeed/cmd/bridge")
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the program: %w\n%s", err, text)
	}
	return nil
}
