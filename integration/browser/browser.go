package browser

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Run runs a script of this package, which is in dir, and reads the last line that it prints into seen. A line that is
// a key of answers is a request: the script waits for the call to return.
func Run(dir, script string, seen any, answers map[string]func(), args ...string) error {
	install := exec.Command("bash", filepath.Join(dir, "install.sh"))
	install.Stderr = os.Stderr
	out, err := install.Output()
	if err != nil {
		return fmt.Errorf("installing the browser: %w", err)
	}
	browser, modules, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	look := exec.Command("node", append([]string{filepath.Join(dir, script)}, args...)...)
	look.Env = append(os.Environ(), "NODE_PATH="+modules, "CHROMIUM="+browser)
	look.Stderr = os.Stderr
	in, err := look.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := look.StdoutPipe()
	if err != nil {
		return err
	}
	if err := look.Start(); err != nil {
		return fmt.Errorf("starting node: %w", err)
	}
	last, err := converse(stdout, in, answers)
	if err != nil {
		_ = look.Process.Kill()
	}
	if werr := look.Wait(); werr != nil {
		return fmt.Errorf("running %s: %w", script, werr)
	}
	if err != nil {
		return fmt.Errorf("talking to %s: %w", script, err)
	}
	if err := json.Unmarshal(last, seen); err != nil {
		return fmt.Errorf("reading what %s saw: %w: %.500s", script, err, last)
	}
	return nil
}

// maxLine is more than all that a script says of a page.
const maxLine = 16 << 20

func converse(from io.Reader, to io.Writer, answers map[string]func()) (last []byte, _ error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		last = append(last[:0], lines.Bytes()...)
		if answer := answers[string(last)]; answer != nil {
			answer()
			if _, err := io.WriteString(to, "done\n"); err != nil {
				return nil, err
			}
		}
	}
	return last, lines.Err()
}
