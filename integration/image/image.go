package image

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Image is a built image, and a container of it.
type Image struct {
	Config Config
	Size   int64 // of its files, when Files was called

	dir       string
	container string
	storage   []string // flags
}

// Config is what an image says about how to run it.
type Config struct {
	User            string
	Entrypoint, Cmd []string
	ExposedPorts    map[string]any
	Healthcheck     struct{ Test []string }
	Labels          map[string]string
}

// Build builds the release target of the Dockerfile in the folder root, around the program that it builds first, as
// GoReleaser does. The folder dir keeps the result.
func Build(ctx context.Context, root, dir, version string) (*Image, error) {
	install := exec.CommandContext(ctx, "bash", filepath.Join(root, "integration/image/install.sh"))
	if out, err := install.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("installing buildah: %w\n%s", err, out)
	}
	platform := "linux/" + runtime.GOARCH
	files := filepath.Join(dir, "context")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w -X main.version="+version, "-o",
		filepath.Join(files, platform, "bridge"), "blobfeed/cmd/bridge")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the program: %w\n%s", err, out)
	}
	for _, name := range []string{"Dockerfile", "LICENSE", "THIRD_PARTY_NOTICES"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, fmt.Errorf("reading a file for the image: %w", err)
		}
		if err := os.WriteFile(filepath.Join(files, name), text, 0o644); err != nil {
			return nil, fmt.Errorf("writing a file for the image: %w", err)
		}
	}
	// vfs needs nothing of the kernel.
	i := &Image{
		dir: dir,
		storage: []string{"--storage-driver", "vfs", "--root", filepath.Join(dir, "root"), "--runroot",
			filepath.Join(dir, "run")},
	}
	if _, err := i.buildah(ctx, "bud", "--isolation", "chroot", "--format", "docker", "--platform", platform,
		"--target", "release", "--build-arg", "VERSION="+version, "--tag", "bridge", files); err != nil {
		return nil, err
	}
	text, err := i.buildah(ctx, "inspect", "--type", "image", "bridge")
	if err != nil {
		return nil, err
	}
	var inspected struct{ Docker struct{ Config Config } }
	if err := json.Unmarshal(text, &inspected); err != nil {
		return nil, fmt.Errorf("reading the image's description: %w", err)
	}
	i.Config = inspected.Docker.Config
	container, err := i.buildah(ctx, "from", "--pull-never", "--cap-drop", "ALL", "bridge")
	if err != nil {
		return nil, err
	}
	i.container = strings.TrimSpace(string(container))
	return i, nil
}

// Close removes the container, whose folders are mounted.
func (i *Image) Close() error {
	_, err := i.buildah(context.Background(), "rm", "--all")
	return err
}

// Command starts the image as Docker does: its entrypoint, and its command unless there are arguments. Env has
// variables, "NAME=value", and mounts "/from:/to".
func (i *Image) Command(ctx context.Context, env, mounts []string, args ...string) *exec.Cmd {
	if len(args) == 0 {
		args = i.Config.Cmd
	}
	return i.Exec(ctx, env, mounts, slices.Concat(i.Config.Entrypoint, args)...)
}

// Exec runs another command in the image.
func (i *Image) Exec(ctx context.Context, env, mounts []string, command ...string) *exec.Cmd {
	args := slices.Concat(i.storage, []string{"run", "--isolation", "chroot", "--network", "host"})
	for _, variable := range env {
		args = append(args, "--env", variable)
	}
	for _, mount := range mounts {
		args = append(args, "--volume", mount+":ro")
	}
	return exec.CommandContext(ctx, "buildah", slices.Concat(args, []string{i.container, "--"}, command)...)
}

// PackedSize returns how much a machine that pulls the image transfers.
func (i *Image) PackedSize(ctx context.Context) (size int64, err error) {
	packed := filepath.Join(i.dir, "packed")
	if _, err := i.buildah(ctx, "push", "--quiet", "bridge", "dir:"+packed); err != nil {
		return 0, err
	}
	files, err := os.ReadDir(packed)
	if err != nil {
		return 0, fmt.Errorf("listing the packed image: %w", err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			return 0, fmt.Errorf("listing the packed image: %w", err)
		}
		size += info.Size()
	}
	return size, nil
}

// Files lists all files and folders of the container.
func (i *Image) Files(ctx context.Context) (files []string, err error) {
	out, err := i.buildah(ctx, "mount", i.container)
	if err != nil {
		return nil, err
	}
	root := os.DirFS(strings.TrimSpace(string(out)))
	i.Size = 0
	err = fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().IsRegular() {
			i.Size += info.Size()
		}
		files = append(files, path)
		return nil
	})
	_, unmountErr := i.buildah(ctx, "umount", i.container)
	return files, errors.Join(err, unmountErr)
}

func (i *Image) buildah(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "buildah", slices.Concat(i.storage, args)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("running buildah %s: %w\n%s", args[0], err, stderr.Bytes())
	}
	return out, nil
}
