package main

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"

	"blobfeed/internal/config"
	"blobfeed/internal/ops"
)

// serve answers HTTP until stop is called. A port in use is an error if the settings name it and the instance is there
// to stay. The default port is often in use on a developer's machine, and run --once often runs beside an instance with
// the same settings: these run without HTTP.
func serve(
	ctx context.Context, c *config.Config, stays bool, h http.Handler, log *slog.Logger,
) (stop func(), err error) {
	if c.HTTPAddr == "off" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", c.HTTPAddr)
	if err != nil {
		if stays && c.From("HTTP_ADDR") != "default" {
			return nil, c.Problem("HTTP_ADDR", "%w: %s", err, freeAddress)
		}
		log.Warn("not serving HTTP", "error", err, "hint", freeAddress)
		return func() {}, nil
	}
	log.Info("serving HTTP", "address", l.Addr().String(), "tls", c.HTTPCertFile != "", "token", c.HTTPToken != "")
	if c.HTTPCertFile != "" {
		l = tls.NewListener(l, &tls.Config{
			MinVersion: tls.VersionTLS12,
			// Loaded for every connection, so that a rotation needs no restart.
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				cert, err := tls.LoadX509KeyPair(c.HTTPCertFile, c.HTTPKeyFile)
				return &cert, err
			},
		})
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := ops.Serve(ctx, l, h); err != nil {
			log.Error("serving HTTP failed", "error", err)
		}
	}()
	return func() { cancel(); <-ended }, nil
}

const freeAddress = "set BRIDGE_HTTP_ADDR to a free address, or to off"

// guard returns the protection of the HTTP server.
func guard(c *config.Config, log *slog.Logger) *ops.Guard {
	g := &ops.Guard{Hosts: c.HTTPHosts}
	if c.HTTPToken != "" {
		g.Token = func() string {
			fresh, err := c.Reread()
			if err != nil {
				log.Warn("reading the token for HTTP failed; the previous token stays valid", "error", err)
				fresh = c
			}
			return string(fresh.HTTPToken)
		}
	}
	return g
}
