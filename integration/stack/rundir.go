package stack

import (
	"fmt"
	"os"
	"path/filepath"
)

// runPrefix marks directories that a later run may remove.
const runPrefix = "stack-run-"

// claimDir makes the run directory and holds a lock on it. Directories nobody holds were left by killed runs: they go.
func (s *Stack) claimDir(runs string) error {
	runs, err := filepath.Abs(runs)
	if err != nil {
		return fmt.Errorf("making the run directory: %w", err)
	}
	if err := os.MkdirAll(runs, 0o755); err != nil {
		return fmt.Errorf("making the run directory: %w", err)
	}
	all, err := os.Open(runs) // its lock keeps another process from sweeping a directory before it is claimed
	if err != nil {
		return fmt.Errorf("making the run directory: %w", err)
	}
	defer all.Close()
	if _, err := lockFile(all, true); err != nil {
		return fmt.Errorf("locking %s: %w", runs, err)
	}
	sweep(runs)
	if s.dir, err = os.MkdirTemp(runs, runPrefix); err != nil {
		return fmt.Errorf("making the run directory: %w", err)
	}
	if s.lock, err = os.Open(s.dir); err != nil {
		return fmt.Errorf("locking the run directory: %w", err)
	}
	if _, err := lockFile(s.lock, true); err != nil {
		return fmt.Errorf("locking the run directory: %w", err)
	}
	return nil
}

// sweep removes run directories that nobody holds. Failing is no harm: a process of a run that was killed just now may
// still be writing, or the run's own Close is ahead of us. The next run tries again.
func sweep(runs string) {
	old, err := filepath.Glob(filepath.Join(runs, runPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range old {
		d, err := os.Open(dir)
		if err != nil {
			continue
		}
		if free, err := lockFile(d, false); err == nil && free {
			_ = os.RemoveAll(dir)
		}
		_ = d.Close()
	}
}
