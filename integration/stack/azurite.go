package stack

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
)

// startAzurite starts the blob service of Azurite. It runs the script itself: npx would put processes in between.
func (s *Stack) startAzurite(ctx context.Context) error {
	free, err := freePorts(1)
	if err != nil {
		return err
	}
	url := fmt.Sprintf("http://%s/%s", address(free[0]), AzuriteAccount)
	// azblob asks for a newer API version than Azurite knows.
	accounts := "AZURITE_ACCOUNTS=" + strings.Join(AzuriteAccounts, ":"+AzuriteKey+";") + ":" + AzuriteKey
	p, err := s.spawn("azurite", "", "env", accounts, "node",
		filepath.Join(s.cache, "azurite", "node_modules", "azurite", "dist", "src", "blob", "main.js"),
		"--blobHost", host, "--blobPort", fmt.Sprint(free[0]), "--location", filepath.Join(s.dir, "azurite"),
		"--silent", "--skipApiVersionCheck", "--disableTelemetry")
	if err != nil {
		return err
	}
	s.AzureConnectionString = fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;BlobEndpoint=%s;",
		AzuriteAccount, AzuriteKey, url)
	return p.await(ctx, func(ctx context.Context) error { return answers(ctx, url, 400) }) // it refuses, so it's up
}

// answers returns nil when url answers with a status.
func answers(ctx context.Context, url string, want int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode != want {
		return fmt.Errorf("asking whether %s is up: it says %s", url, resp.Status)
	}
	return nil
}
