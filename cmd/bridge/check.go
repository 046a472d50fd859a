package main

import (
	"context"
	"fmt"
	"io"

	"blobfeed/internal/check"
	"blobfeed/internal/config"
	"blobfeed/internal/plain"
)

func checkVerb(ctx context.Context, args []string, stdout, _ io.Writer) error {
	fs := flags("check", "[--all] [--output text|json]", stdout, func(w io.Writer) {
		fmt.Fprint(w, "\nTries what run needs of the feed and of Kafka, writes nothing, and says what to do. "+
			"Exit code 1 if run would not work.\n")
	})
	all := fs.Bool("all", false, "check every bridge of the settings file")
	asJSON, err := parseOutput(fs, args, "one document per line")
	if err != nil {
		return err
	}
	if *all {
		return checkAll(ctx, stdout, asJSON)
	}
	c, err := load(config.Load(false))
	if err != nil {
		return err
	}
	found, err := findings(ctx, c)
	if err != nil {
		return &settingsError{err}
	}
	address(ctx, &found, c)
	show := found.Text
	if asJSON {
		show = found.JSON
	}
	if err := show(stdout); err != nil {
		return err
	}
	if failed := found.Count(check.Failed); failed > 0 {
		return fmt.Errorf("%d of %s failed", failed, plain.Count(len(found), "check"))
	}
	return nil
}
