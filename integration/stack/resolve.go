package stack

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

//go:embed pom.xml
var pom []byte

//go:embed azurite.json
var azuriteJSON []byte

// resolve fills the cache directory, $STACK_CACHE or blobfeed-stack in the user's cache, under a file lock: test binaries
// that run side by side download once. A copy of the file that was resolved says that it was.
func resolve(ctx context.Context, logf func(string, ...any)) (string, error) {
	for _, tool := range []string{"java", "mvn", "node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", fmt.Errorf("starting Kafka, a registry and Azurite needs %s: install it (Java 17, Maven, Node 20), or set KAFKA_BROKERS, SCHEMA_REGISTRY_URL and AZURE_STORAGE_CONNECTION_STRING: %w", tool, err)
		}
	}
	cache := os.Getenv("STACK_CACHE")
	if cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("finding the cache directory: %w", err)
		}
		cache = filepath.Join(base, "blobfeed-stack")
	}
	cache, err := filepath.Abs(cache)
	if err != nil {
		return "", fmt.Errorf("finding the cache directory: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(cache, "azurite"), 0o755); err != nil {
		return "", fmt.Errorf("making the cache directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(cache, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", fmt.Errorf("locking the cache directory: %w", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("locking the cache directory: %w", err)
	}
	steps := []struct {
		file  string
		want  []byte
		clear []string
		cmd   []string
	}{
		{"pom.xml", pom, []string{"kafka", "registry", ".markers", "kafka.jsa", "registry.jsa"},
			[]string{"mvn", "-q", "-B", "-Dstyle.color=never", "-f", filepath.Join(cache, "pom.xml"), "-Dstack.dir=" + cache, "package"}},
		{"azurite/package.json", azuriteJSON, nil,
			[]string{"npm", "install", "--prefix", filepath.Join(cache, "azurite"), "--omit=dev", "--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"}},
	}
	errs := make([]error, len(steps))
	var wg sync.WaitGroup
	for i, st := range steps {
		stamp := filepath.Join(cache, st.file+".done")
		if have, err := os.ReadFile(stamp); err == nil && string(have) == string(st.want) {
			continue
		}
		logf("resolving %s", st.file)
		wg.Go(func() {
			began := time.Now()
			for _, old := range st.clear {
				errs[i] = errors.Join(errs[i], os.RemoveAll(filepath.Join(cache, old)))
			}
			errs[i] = errors.Join(errs[i], os.WriteFile(filepath.Join(cache, st.file), st.want, 0o644))
			if errs[i] != nil {
				return
			}
			if out, err := exec.CommandContext(ctx, st.cmd[0], st.cmd[1:]...).CombinedOutput(); err != nil {
				errs[i] = fmt.Errorf("resolving with %s: %w\n%s", st.cmd[0], err, out)
				return
			}
			errs[i] = os.WriteFile(stamp, st.want, 0o644)
			logf("resolved %s in %s", st.file, time.Since(began).Round(time.Second))
		})
	}
	wg.Wait()
	return cache, errors.Join(errs...)
}
