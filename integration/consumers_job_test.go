//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const jobs = "consumers" // the folder

// buildJobs compiles them, once. Maven keeps the jars that they need in the user's own repository.
var buildJobs = sync.OnceValue(func() error {
	cmd := exec.Command("mvn", "-q", "-B", "-Dstyle.color=never", "compile")
	cmd.Dir = jobs
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the jobs: %w\n%s", err, out)
	}
	return nil
})

// runJob runs a job to its end and returns the lines it prints.
func runJob[T any](t *testing.T, stdin, main string, args ...string) []T {
	t.Helper()
	classpath, err := os.ReadFile(filepath.Join(jobs, "target", "classpath"))
	if err != nil {
		t.Fatal(err)
	}
	var opens string // what Flink looks into
	for _, p := range []string{"lang", "lang.invoke", "net", "nio", "text", "time", "util", "util.concurrent"} {
		opens += "--add-opens=java.base/java." + p + "=ALL-UNNAMED "
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	java := []string{"-Xmx512m", "-XX:ActiveProcessorCount=2", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dfile.encoding=UTF-8",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp",
		filepath.Join("target", "classes") + string(os.PathListSeparator) + string(classpath)}
	cmd := exec.CommandContext(ctx, "java", slices.Concat(java, []string{main}, args)...)
	cmd.Dir = jobs
	cmd.Env = append(os.Environ(), "JDK_JAVA_OPTIONS="+opens)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	err = cmd.Run()
	t.Logf("%s ran %s", main, time.Since(began).Round(100*time.Millisecond))
	if err != nil {
		t.Fatalf("running %s: %v\n%s", main, err, stderr.String())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of %s:\n%s", main, stderr.String())
		}
	})
	var rows []T
	for line := range strings.Lines(stdout.String()) {
		var row T
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%s printed %q: %v", main, line, err)
		}
		rows = append(rows, row)
	}
	return rows
}
