package feedsim

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Sink is where a feed is written.
type Sink interface {
	// Put writes a blob whole, replacing one of that name at once.
	Put(ctx context.Context, name string, data []byte) error
	// Append adds to the end of a blob, creating it if needed.
	Append(ctx context.Context, name string, data []byte) error
}

// Dir is a Sink in a local directory.
type Dir string

var _ Sink = Dir("")

// Put implements Sink.
func (d Dir) Put(_ context.Context, name string, data []byte) error {
	file := filepath.Join(string(d), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := os.WriteFile(file+".new", data, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return os.Rename(file+".new", file)
}

// Append implements Sink.
func (d Dir) Append(_ context.Context, name string, data []byte) error {
	file := filepath.Join(string(d), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("appending to %s: %w", name, err)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("appending to %s: %w", name, err)
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		return fmt.Errorf("appending to %s: %w", name, err)
	}
	return f.Close()
}
