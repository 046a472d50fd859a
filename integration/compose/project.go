package compose

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"blobfeed/integration/stack"
)

// patience is how long a service has to become healthy.
const patience = time.Minute

// Project is a Compose file whose services run.
type Project struct {
	// Dial connects to the ports that the services publish on this machine.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	file    *File
	dir     string
	net     *network
	images  images
	running map[string]<-chan struct{} // by service; closed when it has ended
}

// Build returns the command that starts an image built here. Env has "NAME=value", and mounts "/from:/to".
type Build func(ctx context.Context, env, mounts []string, args ...string) *exec.Cmd

// Up starts the services of a file in the order of their dependencies, and returns when those that have a health check
// are healthy. Built starts the one that is built here. Logs and volumes are in dir. Close it also after an error.
func Up(ctx context.Context, f *File, dir string, built Build) (*Project, error) {
	p := &Project{file: f, dir: dir, running: map[string]<-chan struct{}{}}
	var err error
	if p.images, err = findImages(ctx, f); err != nil {
		return p, err
	}
	if p.net, err = connect(ctx, f); err != nil {
		return p, err
	}
	p.Dial = p.net.dialer(f)
	for len(p.running) < len(f.Services) {
		var started []string
		for _, name := range slices.Sorted(maps.Keys(f.Services)) {
			if p.running[name] == nil && p.ready(f.Services[name]) {
				started = append(started, name)
			}
		}
		if len(started) == 0 {
			return p, errors.New("starting services: they depend on each other, or on one that does not exist")
		}
		for _, name := range started {
			if err := p.start(ctx, name, built); err != nil {
				return p, err
			}
		}
		for _, name := range started {
			if err := p.healthy(ctx, name); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// ready reports whether all that a service depends on runs.
func (p *Project) ready(s Service) bool {
	for other := range s.DependsOn {
		if p.running[other] == nil {
			return false
		}
	}
	return true
}

func (p *Project) start(ctx context.Context, name string, built Build) error {
	s := p.file.Services[name]
	var env []string
	for key, value := range s.Environment {
		env = append(env, key+"="+s.locate(value, p.dir))
	}
	argv := p.images.command(s.Command)
	for i := range argv {
		argv[i] = s.locate(argv[i], p.dir)
	}
	if s.Build != "" {
		argv = built(ctx, env, []string{p.net.hosts(name) + ":/etc/hosts"}, argv...).Args
	} else if len(argv) == 0 {
		var err error
		if argv, err = p.images.entrypoint(ctx, s, filepath.Join(p.dir, name+".settings"), env); err != nil {
			return fmt.Errorf("starting %s: %w", name, err)
		}
	}
	log, err := os.Create(p.logFile(name))
	if err != nil {
		return fmt.Errorf("opening a log: %w", err)
	}
	argv = p.net.within(name, argv)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = p.dir, append(env, "PATH="+os.Getenv("PATH"), "HOME="+os.Getenv("HOME"))
	if p.running[name], err = stack.StartTied(cmd, log); err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	return nil
}

// healthy waits until the health check of a service succeeds.
func (p *Project) healthy(ctx context.Context, name string) error {
	test := p.file.Services[name].Healthcheck.Test
	if len(test) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		out, err := p.Command(ctx, name, p.images.command(test[1:])).CombinedOutput() // after "CMD"
		if err == nil {
			return nil
		}
		select {
		case <-p.running[name]:
			return fmt.Errorf("starting %s: it has ended, and its log with\n%s", name, p.Log(name))
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w: %w\n%s\n%s", name, context.Cause(ctx), err, out, p.Log(name))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Command runs something in the network of a service.
func (p *Project) Command(ctx context.Context, name string, argv []string) *exec.Cmd {
	argv = p.net.within(name, argv)
	return exec.CommandContext(ctx, argv[0], argv[1:]...)
}

// Processes lists those in the network of a service.
func (p *Project) Processes(name string) (ids []int, err error) {
	out, err := exec.Command("ip", "netns", "pids", p.net.space(name)).Output()
	if err != nil {
		return nil, fmt.Errorf("listing the processes of %s: %w", name, err)
	}
	for _, field := range strings.Fields(string(out)) {
		id, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("listing the processes of %s: %w", name, err)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func (p *Project) logFile(name string) string { return filepath.Join(p.dir, name+".log") }

// Log returns what a service has written.
func (p *Project) Log(name string) string {
	text, err := os.ReadFile(p.logFile(name))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Close ends all processes and removes the network.
func (p *Project) Close() (err error) {
	if p.net == nil {
		return nil
	}
	for name, ended := range p.running {
		ids, lerr := p.Processes(name)
		err = errors.Join(err, lerr)
		for _, id := range ids {
			_ = syscall.Kill(id, syscall.SIGKILL) // it may have ended
		}
		<-ended
	}
	return errors.Join(err, p.net.close())
}
