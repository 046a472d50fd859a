package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"blobfeed/internal/config"
)

// healthcheckVerb asks the instance of this machine, or container, how it is. Of the settings it needs two.
func healthcheckVerb(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("healthcheck", "[--live] [--timeout DURATION]", stderr, func(w io.Writer) {
		fmt.Fprintf(w, "\nAsks the instance at HTTP_ADDR (default %s) whether it is ready. Exit code 1 if not, with the reasons.\n",
			config.Defaults().HTTPAddr)
	})
	live := fs.Bool("live", false, "ask only whether the process is alive")
	timeout := fs.Duration("timeout", 3*time.Second, "how long to wait for the answer")
	if err := parse(fs, args); err != nil {
		return err
	}
	c, _ := config.Load(false) // the two settings that count are checked here
	if c.HTTPAddr == "off" {
		return &usageError{c.Problem("HTTP_ADDR", "it is off, so no instance can answer")}
	}
	url, err := localURL(c.HTTPAddr, c.HTTPCertFile != "")
	if err != nil {
		return &usageError{c.Problem("HTTP_ADDR", "%w", err)}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, *timeout, errors.New("no answer in time"))
	defer cancel()
	path := "/readyz"
	if *live {
		path = "/healthz"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, nil)
	if err != nil {
		return &usageError{c.Problem("HTTP_ADDR", "%w", err)}
	}
	// Not the default client: a proxy of the environment's does not know our loopback. The certificate has the names by
	// which
	// others ask, and nothing secret is sent.
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return fmt.Errorf("asking the instance at %s: %w", url, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return fmt.Errorf("asking the instance at %s: %w", url, err)
	}
	text := strings.TrimSpace(string(body))
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("not healthy: %s", text)
	}
	_, err = fmt.Fprintln(stdout, text)
	return err
}

// localURL returns where an instance that listens at addr answers on this machine.
func localURL(addr string, encrypted bool) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", errors.New("want [host]:port")
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost" // resolves to what the listener has, of IPv4 and IPv6
	}
	scheme := "http://"
	if encrypted {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, port), nil
}
