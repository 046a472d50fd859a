package main

import (
	"cmp"
	"context"
	"flag"
	"io"
	"os"
	"os/signal"
	"syscall"

	"blobfeed/internal/config"
	"blobfeed/internal/demo"
)

func demoVerb(ctx context.Context, env config.Env, args []string, stdout, _ io.Writer) error {
	fs := flags(nil, "demo", "[--port N] [--for DURATION] [--format json|avro] [--envelope NAME]", stdout, nil)
	port := fs.Int("port", 19092, "port of the embedded broker, 0 for any; if the default is taken, another one")
	format := fs.String("format", cmp.Or(env[config.Prefix+"_FORMAT"], config.Defaults().Format),
		"json, or avro with an embedded schema registry")
	envelope := fs.String("envelope", cmp.Or(env[config.Prefix+"_ENVELOPE"], config.Defaults().Envelope),
		"wrapped, bare, row, key_only or enriched")
	limit := fs.Duration("for", 0, "how long to run; 0: until Ctrl-C")
	if err := parse(fs, args); err != nil {
		return err
	}
	named := false
	fs.Visit(func(f *flag.Flag) { named = named || f.Name == "port" })
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if *limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, *limit)
		defer cancel()
	}
	return typed(demo.Run(ctx, demo.Options{Port: *port, Named: named, Page: env[config.Prefix+"_HTTP_ADDR"],
		Version: versionText(), Format: *format, Envelope: *envelope}, stdout))
}
