package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"blobfeed/integration/chaos"
	"blobfeed/integration/stack"
)

// evaluation is how often the program is scraped and rules are evaluated.
const evaluation = 5 * time.Second

// Prometheus is a server that scrapes one address and evaluates the project's alerts.
type Prometheus struct {
	url  string
	cmd  *exec.Cmd
	done <-chan struct{}
}

// find returns the server's program: the named one, the installed one, or what deploy/check.sh got beside promtool.
func find() (string, error) {
	if bin := os.Getenv("PROMETHEUS"); bin != "" {
		return bin, nil
	}
	if bin, err := exec.LookPath("prometheus"); err == nil {
		return bin, nil
	}
	cache, err := stack.CacheDir()
	if err != nil {
		return "", fmt.Errorf("looking for Prometheus: %w", err)
	}
	bin := filepath.Join(cache, "promtool", "usr", "bin", "prometheus")
	if _, err := os.Stat(bin); err != nil {
		return "", fmt.Errorf("looking for Prometheus: install it, name one in PROMETHEUS, or on Debian run make "+
			"alerts, which gets it: %w", err)
	}
	return bin, nil
}

// startPrometheus returns when the server answers. Its data and log are in dir.
func startPrometheus(ctx context.Context, dir, target, rules string) (*Prometheus, error) {
	bin, err := find()
	if err != nil {
		return nil, err
	}
	address, err := stack.FreeAddress()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "prometheus.yaml")
	text := fmt.Sprintf(`global: {scrape_interval: %[1]s, scrape_timeout: %[1]s, evaluation_interval: %[1]s}
rule_files: [%[2]q]
scrape_configs:
- job_name: bridge
  static_configs: [{targets: [%[3]q]}]
`, evaluation, rules, target)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return nil, err
	}
	out, err := os.Create(filepath.Join(dir, "prometheus.log"))
	if err != nil {
		return nil, err
	}
	p := &Prometheus{url: "http://" + address,
		cmd: exec.Command(bin, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "prometheus"),
			"--web.listen-address="+address)}
	if p.done, err = stack.StartTied(p.cmd, out); err != nil {
		return nil, fmt.Errorf("starting Prometheus: %w", err)
	}
	err = chaos.Await(ctx, time.Minute, "Prometheus is ready", func(ctx context.Context) (bool, error) {
		select {
		case <-p.done:
			return false, fmt.Errorf("it has ended; see %s", out.Name())
		default:
		}
		code, err := status(ctx, p.url+"/-/ready")
		return code == http.StatusOK, err
	})
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *Prometheus) close() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.done
}

func status(ctx context.Context, url string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// Series is what a range query found.
type Series struct {
	Labels  map[string]string
	Samples []Sample
}

// queryRange asks for an expression at each evaluation.
func (p *Prometheus) queryRange(ctx context.Context, expr string, from, to time.Time) (all []Series, err error) {
	ask := url.Values{"query": {expr}, "step": {evaluation.String()}, "start": {from.UTC().Format(time.RFC3339)},
		"end": {to.UTC().Format(time.RFC3339)}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api/v1/query_range?"+ask.Encode(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking Prometheus for %s: %w", expr, err)
	}
	defer resp.Body.Close()
	var answer struct {
		Error string
		Data  struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("asking Prometheus for %s: %w", expr, err)
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("asking Prometheus for %s: %s", expr, answer.Error)
	}
	for _, r := range answer.Data.Result {
		s := Series{Labels: r.Metric}
		for _, v := range r.Values {
			at, isTime := v[0].(float64)
			text, isText := v[1].(string)
			value, err := strconv.ParseFloat(text, 64)
			if !isTime || !isText || err != nil {
				return nil, fmt.Errorf("asking Prometheus for %s: a sample is %v", expr, v)
			}
			s.Samples = append(s.Samples, Sample{time.UnixMilli(int64(at * 1000)), value})
		}
		all = append(all, s)
	}
	return all, nil
}
