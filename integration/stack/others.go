package stack

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
)

func (s *Stack) startRegistry(ctx context.Context) error {
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	jars, err := filepath.Glob(filepath.Join(s.cache, "registry", "*-runner.jar"))
	if err != nil || len(jars) == 0 {
		return fmt.Errorf("the registry's jar is not in %s: remove that directory and try again", s.cache)
	}
	s.SchemaRegistryURL = fmt.Sprintf("http://127.0.0.1:%d/apis/ccompat/v7", ports[0])
	p, err := s.spawn("registry", "java", s.jvm("registry", "-Xmx256m", "-Dquarkus.http.host=127.0.0.1", fmt.Sprintf("-Dquarkus.http.port=%d", ports[0]),
		"-Dquarkus.management.host=127.0.0.1", fmt.Sprintf("-Dquarkus.management.port=%d", ports[1]), "-jar", jars[0])...)
	if err != nil {
		return err
	}
	return p.await(ctx, func(ctx context.Context) error { return answers(ctx, s.SchemaRegistryURL+"/subjects", 200) })
}

func (s *Stack) startAzurite(ctx context.Context) error {
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	url := fmt.Sprintf("http://127.0.0.1:%d/%s", ports[0], AzuriteAccount)
	s.AzureConnectionString = fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;BlobEndpoint=%s;", AzuriteAccount, AzuriteKey, url)
	p, err := s.spawn("azurite", "node", filepath.Join(s.cache, "azurite/node_modules/azurite/dist/src/blob/main.js"), "--blobHost", "127.0.0.1", "--blobPort", fmt.Sprint(ports[0]),
		"--location", filepath.Join(s.dir, "azurite"), "--silent", "--skipApiVersionCheck", "--disableTelemetry")
	if err != nil {
		return err
	}
	return p.await(ctx, func(ctx context.Context) error { return answers(ctx, url, 400) })
}

func answers(ctx context.Context, url string, want int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection can be used again
	if resp.StatusCode != want {
		return fmt.Errorf("%s says %s", url, resp.Status)
	}
	return nil
}
