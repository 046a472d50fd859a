package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"blobfeed/integration/stack"
)

// peer is a reader that is measured.
type peer struct {
	name     string // of its directory
	title    string
	segments int // that it reads: a slow reader would take too long for all of them
	pins     string
	libraries,
	runtime []string
	install [][]string // in its directory
	command []string   // in its directory
}

// bridge has no directory.
const bridge = "bridge"

var peers = []peer{
	{name: bridge, title: "bridge", segments: 10, runtime: []string{"go", "version"},
		command: []string{"./bridge", "run", "--once"}},
	{name: "golang", title: "Go: azblob, hamba/avro", segments: 10, pins: "go.mod",
		libraries: []string{"azblob v1.8.1", "hamba/avro/v2 v2.31.0", "franz-go v1.22.2"},
		runtime:   []string{"go", "version"},
		install:   [][]string{{"go", "build", "-o", "peer", "."}}, command: []string{"./peer"}},
	{name: "java", title: "Java SDK", segments: 10, pins: "pom.xml",
		libraries: []string{"azure-storage-blob-changefeed 12.0.0-beta.34", "kafka-clients 4.3.1"},
		runtime:   []string{"java", "-version"},
		install:   [][]string{{"mvn", "-q", "-B", "-Dstyle.color=never", "package"}},
		command:   []string{"java", "-cp", "target/peer-1.jar:target/lib/*", "Peer"}},
	{name: "javascript", title: "JavaScript SDK", segments: 1, pins: "package.json",
		libraries: []string{"@azure/storage-blob-changefeed 12.0.0-preview.4", "kafkajs 2.2.4"},
		runtime:   []string{"node", "--version"},
		install: [][]string{{"npm", "install", "--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund",
			"--loglevel=error"}},
		command: []string{"node", "peer.js"}},
	{name: "python", title: "Python SDK", segments: 1, pins: "requirements.txt",
		libraries: []string{"azure-storage-blob-changefeed 12.0.0b5", "confluent-kafka 2.16.1"},
		runtime:   []string{"python3", "--version"},
		install: [][]string{{"python3", "-m", "venv", "venv"}, {"venv/bin/pip", "install", "-q", "-r",
			"requirements.txt"}},
		command: []string{"venv/bin/python", "peer.py"}},
}

// installAll copies the readers to the cache, has their package managers fetch what they need, unless that is done, and
// returns the directory of each.
func installAll(ctx context.Context, cache string, chosen []peer) (map[string]string, error) {
	dirs := map[string]string{}
	for _, p := range chosen {
		dir := filepath.Join(cache, "peers", p.name)
		dirs[p.name] = dir
		if p.name == bridge {
			if err := stack.Build(filepath.Join(dir, bridge), ""); err != nil {
				return nil, err
			}
			continue
		}
		source := os.DirFS(filepath.Join("integration", "peers", p.name))
		stamp, err := digest(source)
		if err != nil {
			return nil, fmt.Errorf("reading integration/peers/%s (run in the repository's root): %w", p.name, err)
		}
		if have, err := os.ReadFile(filepath.Join(dir, ".done")); err == nil && string(have) == stamp {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
		if err := os.CopyFS(dir, source); err != nil {
			return nil, err
		}
		progress("installing %s", p.name)
		for _, command := range p.install {
			if text, err := p.in(ctx, dir, command).CombinedOutput(); err != nil {
				return nil, fmt.Errorf("installing %s: %s: %w\n%s", p.name, strings.Join(command, " "), err, text)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, ".done"), []byte(stamp), 0o644); err != nil {
			return nil, err
		}
	}
	return dirs, nil
}

func (p peer) in(ctx context.Context, dir string, command []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = dir
	return cmd
}

// digest is of the names and the contents of a directory's files.
func digest(dir fs.FS) (string, error) {
	h := sha256.New()
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(dir, name)
		fmt.Fprintf(h, "%s %d\n%s", name, len(data), data)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// measure runs a reader on a new topic, and counts what it delivered.
func (p peer) measure(ctx context.Context, s *stack.Stack, dir string, f feed, round int) (result, error) {
	topic := fmt.Sprintf("peer-%s-%d", p.name, round)
	if err := createTopic(ctx, s.KafkaBrokers, topic); err != nil {
		return result{}, fmt.Errorf("creating a topic: %w", err)
	}
	segments := min(p.segments, f.segments)
	u, err := p.run(ctx, s, dir, topic, f.connection, f.begin.Add(time.Duration(segments)*time.Hour-time.Hour/2))
	if err != nil {
		return result{}, err
	}
	r := result{Name: p.name, Title: p.title, Libraries: p.libraries, Events: segments * f.each}
	if r.Runtime, err = p.version(ctx, dir); err != nil {
		return result{}, err
	}
	if r.Delivered, r.Duplicates, err = count(ctx, s.KafkaBrokers, topic, f, segments); err != nil {
		return result{}, err
	}
	if r.Delivered == 0 {
		return result{}, fmt.Errorf("it delivered nothing: see %s", filepath.Join(dir, "log"))
	}
	r.PerSecond = float64(r.Delivered) / u.Seconds
	r.CPU = u.CPUSeconds * 1e6 / float64(r.Delivered)
	r.MB = u.PeakBytes / 1e6
	return r, nil
}

// run returns what the program took. PEER_END lies in the last segment that it should read: the SDKs for Java and
// JavaScript round it up to the hour and stop before that, the one for Python stops after the hour that it is in.
func (p peer) run(ctx context.Context, s *stack.Stack, dir, topic, account string, end time.Time) (u usage, err error) {
	self, err := os.Executable()
	if err != nil {
		return u, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return u, err
	}
	defer r.Close()
	cmd := p.in(ctx, dir, append([]string{self, meterVerb}, p.command...))
	cmd.Env = append(append(os.Environ(), s.Env()...), "PEER_TOPIC="+topic, "PEER_END="+end.Format(time.RFC3339),
		"AZURE_STORAGE_CONNECTION_STRING="+account, "BRIDGE_SOURCE_CONNECTION_STRING="+account,
		"BRIDGE_SOURCE_AUTH=connection_string",
		"BRIDGE_KAFKA_BROKERS="+strings.Join(s.KafkaBrokers, ","), "BRIDGE_NAME="+topic, "BRIDGE_TOPIC="+topic,
		"BRIDGE_EVENTS=all", "BRIDGE_HTTP_ADDR=127.0.0.1:0")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return u, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{w}
	if err := cmd.Start(); err != nil {
		return u, err
	}
	w.Close()
	decoded := json.NewDecoder(r).Decode(&u)
	if err := cmd.Wait(); err != nil {
		return u, fmt.Errorf("running it: %w: see %s", err, log.Name())
	}
	return u, decoded
}

// version returns the first line that says which runtime runs the program.
func (p peer) version(ctx context.Context, dir string) (string, error) {
	text, err := p.in(ctx, dir, p.runtime).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("asking for the version: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line), nil
}
