package ops

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// What alerts and dashboard ask for is there.
func TestDeployAsksForMetricsThatExist(t *testing.T) {
	known := map[string]bool{}
	for _, d := range Reference() {
		known[d.Name] = true
		if d.Type == "histogram" {
			known[d.Name+"_bucket"] = true
		}
	}
	name := regexp.MustCompile(Namespace + `_[a-z0-9_]+`)
	for _, file := range []string{"../../deploy/prometheus/alerts.yaml", "../../deploy/prometheus/alerts_test.yaml", "../../deploy/grafana/bridge.json", "../../docs/operations.md"} {
		used := name.FindAllString(read(t, file), -1)
		if len(used) == 0 {
			t.Errorf("%s uses no metric", file)
		}
		for _, m := range used {
			if !known[m] {
				t.Errorf("%s uses %s, which does not exist", file, m)
			}
		}
	}
	var dashboard struct{ Panels []struct{ Title string } }
	if err := json.Unmarshal([]byte(read(t, "../../deploy/grafana/bridge.json")), &dashboard); err != nil ||
		len(dashboard.Panels) < 20 {
		t.Errorf("the dashboard has %d panels: %v", len(dashboard.Panels), err)
	}
}

// Neither alerts nor dashboard take several bridges for one: one that is well would hide the others.
func TestDeployKeepsBridgesApart(t *testing.T) {
	alerts := read(t, "../../deploy/prometheus/alerts.yaml")
	for _, a := range regexp.MustCompile(`\b(?:sum|max|min|avg|count|group) ?(?:by )?\(.{0,15}`).FindAllString(alerts, -1) {
		if !strings.Contains(a, " by (namespace, job") {
			t.Errorf("the alerts ask for %s…", a)
		}
	}
	var dashboard struct {
		Templating struct {
			List []struct {
				Name              string
				Multi, IncludeAll bool
			}
		}
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal([]byte(read(t, "../../deploy/grafana/bridge.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, v := range dashboard.Templating.List {
		if v.Multi || v.IncludeAll {
			t.Errorf("the dashboard shows several of %s as one", v.Name)
		}
	}
	metric := regexp.MustCompile(`\b(?:blobfeed|process|go)_[a-z0-9_]+`)
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			if e := target.Expr; strings.Count(e, `{namespace="$namespace",job="$job"`) != len(metric.FindAllString(e, -1)) {
				t.Errorf("the dashboard asks for %s", e)
			}
		}
	}
}

// Each alert has a runbook, and each runbook that is named like one an alert.
func TestEveryAlertHasARunbook(t *testing.T) {
	alerts, manual := read(t, "../../deploy/prometheus/alerts.yaml"), read(t, "../../docs/operations.md")
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(alerts, -1) {
		names[m[1]] = true
		if !strings.Contains(alerts, "runbook: docs/operations.md#"+strings.ToLower(m[1])+"\n") {
			t.Errorf("%s does not name its runbook", m[1])
		}
		if !strings.Contains(manual, "\n## "+m[1]+"\n") {
			t.Errorf("%s has no runbook", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^## (Bridge\w+)$`).FindAllStringSubmatch(manual, -1) {
		if !names[m[1]] {
			t.Errorf("there is no alert for the runbook %s", m[1])
		}
	}
	if len(names) < 15 {
		t.Errorf("%d alerts", len(names))
	}
}
