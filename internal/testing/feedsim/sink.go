package feedsim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Sink is where a feed is written. It must not keep the data that it is given.
type Sink interface {
	// Put writes a blob whole, replacing one of that name at once.
	Put(ctx context.Context, name string, data []byte) error
	// Append adds to the end of a blob, creating it if needed.
	Append(ctx context.Context, name string, data []byte) error
}

// Dir is a Sink in a local directory, which need not exist.
type Dir string

var _ Sink = Dir("")

// Put implements Sink. A reader sees the old blob or the new one, never a part.
func (d Dir) Put(ctx context.Context, name string, data []byte) error {
	file, err := d.place(ctx, name)
	if err == nil {
		err = os.WriteFile(file+".new", data, 0o644)
	}
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// Append implements Sink. A reader may see a part of the data.
func (d Dir) Append(ctx context.Context, name string, data []byte) error {
	file, err := d.place(ctx, name)
	if err != nil {
		return fmt.Errorf("appending to %s: %w", name, err)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("appending to %s: %w", name, err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("appending to %s: %w", name, err)
	}
	return nil
}

// place returns the file of a blob. Its folder exists.
func (d Dir) place(ctx context.Context, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	file := filepath.Join(string(d), filepath.FromSlash(name))
	return file, os.MkdirAll(filepath.Dir(file), 0o755)
}
