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

// serve answers HTTP until stop is called. A port that is taken is an error where the settings name it; the default one
// is often taken on a developer's machine, and no reason not to carry events.
func serve(ctx context.Context, c *config.Config, h http.Handler, log *slog.Logger) (stop func(), err error) {
	if c.HTTPAddr == "off" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", c.HTTPAddr)
	if err != nil {
		if c.From("HTTP_ADDR") != "default" {
			return nil, c.Problem("HTTP_ADDR", "%w", err)
		}
		log.Warn("no status page, probes and metrics: set BRIDGE_HTTP_ADDR to a free address, or to off", "error", err)
		return func() {}, nil
	}
	log.Info("serving HTTP", "address", l.Addr().String(), "tls", c.HTTPCertFile != "", "token", c.HTTPToken != "")
	if c.HTTPCertFile != "" {
		l = tls.NewListener(l, &tls.Config{
			MinVersion: tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { // so that a rotation needs no restart
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
			log.Error("no status page, probes and metrics any more", "error", err)
		}
	}()
	return func() { cancel(); <-ended }, nil
}

// guard returns the protection of what is served.
func guard(c *config.Config, log *slog.Logger) *ops.Guard {
	g := &ops.Guard{Hosts: c.HTTPHosts}
	if c.HTTPToken != "" {
		g.Token = func() string {
			fresh, err := c.Reread()
			if err != nil {
				log.Warn("the token for HTTP can't be read again; the one before stays in force", "error", err)
				fresh = c
			}
			return string(fresh.HTTPToken)
		}
	}
	return g
}
