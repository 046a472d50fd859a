package main

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"blobfeed/internal/config"
	"blobfeed/internal/ops"
)

// listen returns a listener for HTTP, nil without HTTP. An address in use is an error that must end the instance if the
// settings name the address and the instance is there to stay. The default port is often in use on a developer's
// machine, and run --once often runs beside an instance with the same settings: these run without HTTP.
func listen(c *config.Config, stays bool) (l net.Listener, must bool, err error) {
	if c.HTTPAddr == "off" {
		return nil, false, nil
	}
	l, err = net.Listen("tcp", c.HTTPAddr)
	return l, stays && c.From("HTTP_ADDR") != "default", err
}

// serve answers HTTP until stop is called.
func serve(
	ctx context.Context, c *config.Config, stays bool, h http.Handler, log *slog.Logger,
) (stop func(), err error) {
	l, must, err := listen(c, stays)
	switch {
	case err != nil && must:
		return nil, c.Problem("HTTP_ADDR", "%w: %s", err, freeAddress)
	case err != nil:
		log.Warn("not serving HTTP", "error", err, "hint", freeAddress)
		return func() {}, nil
	case l == nil:
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
		var mu sync.Mutex
		last := string(c.HTTPToken) // that could be read: one that was replaced is not valid again
		g.Token = func() string {
			mu.Lock()
			defer mu.Unlock()
			fresh, err := c.Fresh("HTTP_TOKEN")
			if err != nil {
				log.Warn("reading the token for HTTP failed; the previous token stays valid", "error", err)
				return last
			}
			last = fresh
			return last
		}
	}
	return g
}
