//go:build integration

package integration

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"blobfeed/integration/manual"
	"blobfeed/integration/stack"
)

// The manual's commands do what the manual says, from the first page on, as a reader would run them.
func TestManual(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("bash", "manual/install.sh").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s, err := stack.Start(t.Context(), stack.Options{Brokers: 1, Registry: true, Secure: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	password := "s3 cr'et"
	if err := s.SetPassword(t.Context(), "bridge", password); err != nil {
		t.Fatal(err)
	}
	if err := s.Allow(t.Context(), aclsOf(t, "bridge", "blobfeed", "blob-changes")...); err != nil {
		t.Fatal(err)
	}
	r := reader{dir: t.TempDir()}
	secret := filepath.Join(r.dir, "password")
	if err := os.WriteFile(secret, []byte(password), 0o600); err != nil {
		t.Fatal(err)
	}
	var addresses [2]string
	for i := range addresses {
		if addresses[i], err = stack.FreeAddress(); err != nil {
			t.Fatal(err)
		}
	}
	first, second := addresses[0], addresses[1]
	r.replace = strings.NewReplacer("localhost:9092", s.KafkaBrokers[0], "kafka.example.org:9093", s.Security.Scram[0],
		"/etc/bridge/ca.crt", s.Security.CAFile,
		"/etc/bridge/password", secret, "localhost:8082", second, "=:8082", "="+second)
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "BRIDGE_") {
			r.env = append(r.env, e)
		}
	}
	r.env = append(r.env, "BRIDGE_HTTP_ADDR="+first, "TMPDIR="+r.dir)
	r.env = append(r.env, s.Env()...)

	blocks, err := manual.Blocks("..")
	if err != nil {
		t.Fatal(err)
	}
	for i, use := range manual.Uses {
		for _, b := range blocks {
			if b.Commands() == "" || manual.Of(b) != i {
				continue
			}
			if use.Skip != "" {
				t.Logf("%s is not run: %s", b, use.Skip)
			} else {
				t.Run(b.String(), func(t *testing.T) { r.run(t, b, use) })
			}
		}
	}
	for _, b := range blocks {
		if settings := b.Settings(); settings != nil {
			t.Run(b.String(), func(t *testing.T) {
				p := start(t, []string{"config"},
					append([]string{"SOURCE_URL=file:///feed", "KAFKA_BROKERS=localhost:9092"},
						trimmed(settings)...)...)
				if code := p.wait(t, time.Minute); code != 0 {
					t.Errorf("exit code %d\n%s", code, p.log)
				}
			})
		}
	}
}

// trimmed are settings as start takes them.
func trimmed(settings []string) (short []string) {
	for _, s := range settings {
		short = append(short, strings.TrimPrefix(s, "BRIDGE_"))
	}
	return short
}

// reader runs the blocks of a page in one shell, as it seems to them.
type reader struct {
	dir     string
	env     []string
	replace *strings.Replacer // addresses and files of the manual by those of the test
}

func (r *reader) run(t *testing.T, b manual.Block, use manual.Use) {
	t.Helper()
	// A page's environment goes from block to block; the others begin where the quickstart's fourth step does.
	state := filepath.Join(r.dir, strings.ReplaceAll(b.Page, "/", "-"))
	script := fmt.Sprintf("state='%s'\n[ -f $state ] && . $state\ntrap 'export -p > $state' EXIT\nset -e\n%s", state,
		r.replace.Replace(b.Commands()))
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "..", r.env, &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], r.settings(b.Page)...)
	out := new(logBuffer)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	signal := func(s syscall.Signal) { _ = syscall.Kill(-cmd.Process.Pid, s) } // they may have ended
	t.Cleanup(func() { signal(syscall.SIGKILL) })
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	limit, look := time.After(3*time.Minute), time.NewTicker(50*time.Millisecond)
	defer look.Stop()
	interrupted := false
	for {
		select {
		case err := <-ended:
			r.judge(t, use, out.String(), err, interrupted)
			return
		case <-look.C:
			if use.Until != "" && !interrupted && strings.Contains(out.String(), use.Until) {
				interrupted = true
				signal(syscall.SIGINT)
			}
		case <-limit:
			t.Fatalf("it has not ended:\n%s", out)
		}
	}
}

// settings are those that a page takes for granted: what the quickstart has set when the page is run.
func (r *reader) settings(page string) []string {
	if page == "docs/quickstart.md" {
		return nil
	}
	root, err := filepath.Abs("..")
	if err != nil {
		panic(err)
	}
	env := []string{"PATH=" + filepath.Join(root, "bin") + ":" + os.Getenv("PATH")}
	for _, e := range r.env {
		if brokers, ok := strings.CutPrefix(e, "KAFKA_BROKERS="); ok {
			env = append(env, "BRIDGE_KAFKA_BROKERS="+brokers, "BRIDGE_SOURCE_URL=file://"+filepath.Join(root,
				"testdata", "real-2020"))
		}
	}
	return env
}

func (r *reader) judge(t *testing.T, use manual.Use, out string, err error, interrupted bool) {
	t.Helper()
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	switch {
	case use.Until != "" && !interrupted:
		t.Errorf("it ended by itself")
	case use.Until == "" && code != use.Code:
		t.Errorf("exit code %d, want %d", code, use.Code)
	}
	for _, text := range use.Says {
		if !strings.Contains(out, text) {
			t.Errorf("it does not say %q", text)
		}
	}
	for _, text := range use.Not {
		if strings.Contains(out, text) {
			t.Errorf("it says %q", text)
		}
	}
	if t.Failed() {
		t.Logf("output:\n%s", out)
	}
}
