package main

import (
	"context"
	"fmt"
	"io"

	"blobfeed/config"
)

func configVerb(_ context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("config", "[--format text|markdown]", stderr, nil)
	format := fs.String("format", "text", "text or markdown")
	if err := parse(fs, args); err != nil {
		return err
	}
	switch *format {
	case "text":
		return config.Usage(stdout)
	case "markdown":
		return config.Markdown(stdout)
	}
	return &usageError{fmt.Errorf("--format %s: want text or markdown", *format)}
}
