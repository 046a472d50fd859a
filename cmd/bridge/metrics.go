package main

import (
	"context"
	"fmt"
	"io"

	"blobfeed/internal/ops"
)

func metricsVerb(_ context.Context, args []string, stdout, _ io.Writer) error {
	fs := flags("metrics", "[--format text|markdown]", stdout, nil)
	format := fs.String("format", "text", "text or markdown")
	if err := parse(fs, args); err != nil {
		return err
	}
	if *format != "text" && *format != "markdown" {
		return &usageError{fmt.Errorf("--format %s: want text or markdown", *format)}
	}
	return ops.WriteReference(stdout, *format == "markdown")
}
