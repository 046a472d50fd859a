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

// healthcheckVerb asks the local instance whether it is ready. It needs only the settings HTTP_ADDR and HTTP_CERT_FILE.
func healthcheckVerb(ctx context.Context, args []string, stdout, _ io.Writer) error {
	fs := flags("healthcheck", "[--live] [--timeout DURATION]", stdout, func(w io.Writer) {
		fmt.Fprintf(w, "\nAsks the instance at HTTP_ADDR (default %s) whether it is ready. "+
			"Exit code 1 if not, with the reasons.\n", config.Defaults().HTTPAddr)
	})
	live := fs.Bool("live", false, "check only whether the process is alive")
	timeout := fs.Duration("timeout", 3*time.Second, "maximum wait for the answer")
	if err := parse(fs, args); err != nil {
		return err
	}
	c, err := config.Load(false) // of other problems only a missing file counts: the two settings are checked here
	var unread *config.FileError
	if errors.As(err, &unread) {
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
		return 0, "", fmt.Errorf("asking the instance at %s: %w", url, err)
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
