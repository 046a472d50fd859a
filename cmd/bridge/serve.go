package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"blobfeed/internal/config"
	"blobfeed/internal/ops"
	"blobfeed/internal/plain"
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

// healthcheckVerb asks the local instance whether it is ready. It needs only the settings HTTP_ADDR and HTTP_CERT_FILE.
func healthcheckVerb(ctx context.Context, env config.Env, args []string, stdout, _ io.Writer) error {
	fs := flags(env, "healthcheck", "[--live] [--timeout DURATION]", stdout, func(w io.Writer) {
		fmt.Fprintf(w, "\nAsks the instance at HTTP_ADDR (default %s) whether it is ready. "+
			"Exit code 1 if not, with the reasons.\n", config.Defaults().HTTPAddr)
	})
	live := fs.Bool("live", false, "check only whether the process is alive")
	timeout := fs.Duration("timeout", 3*time.Second, "maximum wait for the answer")
	if err := parse(fs, args); err != nil {
		return err
	}
	c, err := env.Load(false) // of other problems only a missing file counts: the two settings are checked here
	if unread, is := errors.AsType[*config.FileError](err); is {
		return &settingsError{unread}
	}
	if c.HTTPAddr == "off" {
		return &settingsError{c.Problem("HTTP_ADDR", "it is off, so no instance can answer")}
	}
	path := "/readyz"
	if *live {
		path = "/healthz"
	}
	status, text, err := askLocal(ctx, c, path, *timeout)
	if err != nil {
		return err
	}
	if strings.HasPrefix(text, "<") {
		return fmt.Errorf("another program answers at %s: give this command the instance's BRIDGE_HTTP_ADDR",
			c.HTTPAddr)
	}
	if status != http.StatusOK {
		return fmt.Errorf("not healthy: %s", text)
	}
	_, err = fmt.Fprintln(stdout, text)
	return err
}

// askLocal asks the instance on this machine.
func askLocal(ctx context.Context, c *config.Config, path string, timeout time.Duration) (int, string, error) {
	url, err := localURL(c.HTTPAddr, c.HTTPCertFile != "")
	if err != nil {
		return 0, "", &settingsError{c.Problem("HTTP_ADDR", "%w", err)}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errors.New("no answer in time"))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, nil)
	if err != nil {
		return 0, "", &settingsError{c.Problem("HTTP_ADDR", "%w", err)}
	}
	// Not the default client, whose proxy can't reach the loopback address. The certificate is for the names that other
	// machines use, so it is not verified; the request has no secret.
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return 0, "", plain.WithRemedy(fmt.Errorf("asking the instance at %s: %w", url, errors.Unwrap(err)),
			"start one on this machine, or give this command the instance's BRIDGE_HTTP_ADDR")
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return 0, "", fmt.Errorf("asking the instance at %s: %w", url, err)
	}
	return resp.StatusCode, strings.TrimSpace(string(body)), nil
}

// localURL returns the URL on this machine of an instance that listens at addr.
func localURL(addr string, encrypted bool) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", errors.New("want [host]:port")
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost" // resolves to IPv4 and IPv6, and the listener has one of them
	}
	scheme := "http://"
	if encrypted {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, port), nil
}
