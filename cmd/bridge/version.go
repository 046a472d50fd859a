package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// version is set by the linker for releases.
var version string

func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return "devel-" + s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return "devel"
}

func versionVerb(_ context.Context, args []string, stdout, _ io.Writer) error {
	if err := parse(flags("version", "", stdout, nil), args); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "bridge %s %s %s/%s\n",
		versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
