package stack

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

//go:embed pom.xml
var pom []byte

//go:embed azurite.json
var azuriteJSON []byte

// download is a part of the cache that one tool fetches.
type download struct {
	file   string // what the tool reads, in the cache
	want   []byte // its content
	clear  []string
	needs  string // what runs the result
	tool   string
	args   []string
	reason string
}

// resolve fills the cache with what the options need, under a file lock: test binaries that run side by side download
// once. It returns the cache's directory.
func resolve(ctx context.Context, o Options, logf func(string, ...any)) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	var parts []download
	if o.Brokers > 0 || o.Registry {
		parts = append(parts, download{
			file: "pom.xml", want: pom, clear: []string{"kafka", "registry", ".markers", "kafka.jsa", "registry.jsa"},
			needs: "java",
			tool:  "mvn", args: []string{"-q", "-B", "-Dstyle.color=never", "-f", filepath.Join(cache, "pom.xml"),
				"-Dstack.dir=" + cache, "package"},
			reason: "Kafka and the registry",
		})
	}
	if o.Azurite {
		parts = append(parts, download{
			file: filepath.Join("azurite", "package.json"), want: azuriteJSON, clear: []string{"azurite"},
			needs: "node",
			tool:  "npm", args: []string{"install", "--prefix", filepath.Join(cache, "azurite"), "--omit=dev",
				"--ignore-scripts", "--no-package-lock",
				"--no-audit", "--no-fund", "--loglevel=error"},
			reason: "Azurite",
		})
	}
	lock, err := lockCache(ctx, cache, logf)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	var missing []error // all at once, before anything is fetched
	for _, d := range parts {
		missing = append(missing, requireTool(d.needs))
		if !d.done(cache) {
			missing = append(missing, requireTool(d.tool))
		}
	}
	if err := errors.Join(missing...); err != nil {
		return "", err
	}
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, d := range parts {
		if !d.done(cache) {
			wg.Go(func() { errs[i] = d.fetch(ctx, cache, logf) })
		}
	}
	wg.Wait()
	return cache, errors.Join(errs...)
}

// done reports whether the part was fetched as it is wanted: a copy of the tool's file says so.
func (d download) done(cache string) bool {
	have, err := os.ReadFile(d.stamp(cache))
	return err == nil && bytes.Equal(have, d.want)
}

func (d download) stamp(cache string) string { return filepath.Join(cache, d.file+".done") }

func (d download) fetch(ctx context.Context, cache string, logf func(string, ...any)) error {
	logf("fetching %s with %s, once; it takes a minute or two", d.reason, d.tool)
	began := time.Now()
	// The stamp goes first: what is cleared below must not count as done.
	for _, old := range append([]string{d.file + ".done", d.file}, d.clear...) {
		if err := os.RemoveAll(filepath.Join(cache, old)); err != nil {
			return fmt.Errorf("clearing the cache: %w", err)
		}
	}
	file := filepath.Join(cache, d.file)
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, d.want, 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing to the cache: %w", err)
	}
	if err := runTool(ctx, d.tool, d.args...); err != nil {
		return fmt.Errorf("fetching %s: %w", d.reason, err)
	}
	if err := os.WriteFile(d.stamp(cache), d.want, 0o644); err != nil {
		return fmt.Errorf("writing to the cache: %w", err)
	}
	logf("fetched %s in %s", d.reason, time.Since(began).Round(time.Second))
	return nil
}

// CacheDir makes and returns $STACK_CACHE, or blobfeed-stack in the user's cache.
func CacheDir() (string, error) {
	cache := os.Getenv("STACK_CACHE")
	if cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("finding the cache directory (STACK_CACHE names another): %w", err)
		}
		cache = filepath.Join(base, "blobfeed-stack")
	}
	cache, err := filepath.Abs(cache)
	if err != nil {
		return "", fmt.Errorf("finding the cache directory: %w", err)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("making the cache directory (STACK_CACHE names another): %w", err)
	}
	return cache, nil
}

// lockCache waits for the cache's lock as long as ctx allows: another process may be fetching for minutes.
func lockCache(ctx context.Context, cache string, logf func(string, ...any)) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(cache, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the cache: %w", err)
	}
	for told := false; ; told = true {
		got, err := lockFile(lock, false)
		if got && err == nil {
			return lock, nil
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("locking the cache: %w", err), lock.Close())
		}
		if !told {
			logf("waiting for another process that fetches to %s", cache)
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("locking the cache: %w", context.Cause(ctx)), lock.Close())
		case <-time.After(200 * time.Millisecond):
		}
	}
}
