package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"blobfeed/integration/stack"
)

// prepare makes a temporary folder and returns the programs to measure: without any, it builds the one of this source.
func prepare(programs []string) (root string, found []string, err error) {
	if root, err = os.MkdirTemp("", "bridge-bench"); err != nil || len(programs) > 0 {
		return root, programs, err
	}
	built := filepath.Join(root, "bridge")
	return root, []string{built}, stack.Build(built, "")
}

// command prepares a run of the program that delivers the feed at a URL. A variant of the settings wins over them: it
// is "default" or assignments joined by +, where {name} stands for the name of the bridge.
func command(ctx context.Context, program, name, variant, feed string, brokers []string, settings ...string) (*exec.Cmd,
	*bytes.Buffer) {
	cmd := exec.CommandContext(ctx, program, "run")
	cmd.Env = append(append(os.Environ(), "BRIDGE_NAME="+name, "BRIDGE_TOPIC="+name, "BRIDGE_SOURCE_URL="+feed,
		"BRIDGE_KAFKA_BROKERS="+strings.Join(brokers, ","), "BRIDGE_HTTP_ADDR=off"), settings...)
	if variant != "default" {
		cmd.Env = append(cmd.Env, strings.Split(strings.ReplaceAll(variant, "{name}", name), "+")...)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}
