package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// rules is a PrometheusRule, as far as the operator's schema has what alerts need.
type rules struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Alert       string            `json:"alert"`
				Expr        string            `json:"expr"`
				For         string            `json:"for"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	} `json:"spec"`
}

func file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The alerts and the dashboard of the chart are those that are tested elsewhere, and arrive unchanged: both have braces
// that are not the chart's.
func TestAlertsAndDashboard(t *testing.T) {
	for of, original := range map[string]string{
		"alerts.yaml": "../../deploy/prometheus/alerts.yaml", "dashboard.json": "../../deploy/grafana/bridge.json",
	} {
		if file(t, chartDir+"/files/"+of) != file(t, original) {
			t.Errorf("copy %s to the chart's files/%s", original, of)
		}
	}
	objects := render(t, valueSets(t)["full"])
	var alerts, want rules
	find(t, objects, "PrometheusRule", &alerts)
	if err := yaml.Unmarshal([]byte(file(t, "../../deploy/prometheus/alerts.yaml")), &want.Spec); err != nil {
		t.Fatal(err)
	}
	if len(alerts.Spec.Groups) == 0 || !reflect.DeepEqual(alerts.Spec, want.Spec) ||
		alerts.Labels["release"] != "prometheus" {
		t.Errorf("%+v", alerts)
	}
	var dashboard corev1.ConfigMap
	for _, o := range objects {
		if strings.Contains(o, "name: test-blobfeed-bridge-dashboard") {
			strict(t, o, &dashboard)
		}
	}
	text := dashboard.Data["blobfeed-bridge.json"]
	if strings.TrimSpace(text) != strings.TrimSpace(file(t, "../../deploy/grafana/bridge.json")) ||
		!json.Valid([]byte(text)) || dashboard.Labels["grafana_dashboard"] != "1" ||
		dashboard.Annotations["grafana_folder"] != "Kafka" {
		t.Errorf("labels %v, %.200s", dashboard.Labels, text)
	}
}

// What the bridge may reach is limited only if the values say to what. Then names can still be resolved.
func TestEgress(t *testing.T) {
	for name, want := range map[string]int{"default": 0, "full": 2} {
		var policy networkingv1.NetworkPolicy
		find(t, render(t, valueSets(t)[name]), "NetworkPolicy", &policy)
		if len(policy.Spec.Egress) != want || (len(policy.Spec.PolicyTypes) == 2) != (want > 0) {
			t.Errorf("%s: %+v", name, policy.Spec)
			continue
		}
		if want > 0 &&
			(policy.Spec.Egress[0].Ports[0].Port.IntVal != 53 || policy.Spec.Egress[1].Ports[0].Port.IntVal != 9093) {
			t.Errorf("%s: %+v", name, policy.Spec.Egress)
		}
	}
}

// Without a choice of one's own, instances are spread over zones and nodes, and found by the labels that they have.
func TestSpread(t *testing.T) {
	d := deployment(t, render(t, valueSets(t)["default"]))
	spread := d.Spec.Template.Spec.TopologySpreadConstraints
	if len(spread) != 2 {
		t.Fatalf("%+v", spread)
	}
	for _, c := range spread {
		if c.WhenUnsatisfiable != corev1.ScheduleAnyway || c.MaxSkew != 1 ||
			!reflect.DeepEqual(c.LabelSelector.MatchLabels, d.Spec.Selector.MatchLabels) {
			t.Errorf("%+v", c)
		}
	}
	if own := deployment(t, render(t, valueSets(t)["full"])).Spec.Template.Spec.TopologySpreadConstraints; len(
		own,
	) != 1 {
		t.Errorf("%+v", own)
	}
}

// The names of the objects, the ids of the pod, its variables, the strategy, and KEDA's credentials are as the values
// have them.
func TestOverrides(t *testing.T) {
	sets := valueSets(t)
	d := deployment(t, render(t, sets["openshift"]))
	if s := d.Spec.Template.Spec.SecurityContext; s.RunAsUser != nil || s.RunAsGroup != nil || s.FSGroup != nil {
		t.Errorf("OpenShift chooses the ids, but the pod has %+v", s)
	}
	if d.Name != "blob-changes" || d.Spec.Selector.MatchLabels["app.kubernetes.io/name"] != "feed" ||
		d.Spec.Strategy.RollingUpdate.MaxSurge.IntVal != 1 {
		t.Errorf("%s: %+v", d.Name, d.Spec)
	}
	objects := render(t, sets["full"])
	d = deployment(t, objects)
	from := d.Spec.Template.Spec.Containers[0].EnvFrom
	if len(from) != 2 || from[1].SecretRef.Name != "proxy" || d.Spec.Strategy.Type != "Recreate" ||
		d.Spec.Strategy.RollingUpdate != nil {
		t.Errorf("%+v, %+v", from, d.Spec.Strategy)
	}
	var scaled map[string]any
	find(t, objects, "ScaledObject", &scaled)
	trigger := scaled["spec"].(map[string]any)["triggers"].([]any)[0].(map[string]any)
	modes := trigger["metadata"].(map[string]any)["authModes"]
	if got := fmt.Sprintf("%v %v", trigger["authenticationRef"], modes); got !=
		"map[kind:ClusterTriggerAuthentication name:prometheus] bearer" {
		t.Errorf("%s", got)
	}
}

// Bridges become a file that is mounted as a whole directory, so that it changes under the process, and whose change
// leaves the pods alone.
func TestBridges(t *testing.T) {
	values := func(url string) map[string]any {
		return map[string]any{"bridges": map[string]any{"photos": map[string]any{"source_url": url}, "none": nil}}
	}
	objects := render(t, values("https://a.example"))
	d := deployment(t, objects)
	var file, common corev1.ConfigMap
	for _, o := range objects {
		switch {
		case kindOf(t, o) != "ConfigMap":
		case strings.Contains(o, "fleet.yaml: |"):
			strict(t, o, &file)
		default:
			strict(t, o, &common)
		}
	}
	if got := file.Data["fleet.yaml"]; got != "bridges:\n  none: null\n  photos:\n    source_url: https://a.example\n" {
		t.Errorf("%q", got)
	}
	var mount corev1.VolumeMount
	for _, m := range d.Spec.Template.Spec.Containers[0].VolumeMounts {
		if m.Name == "bridges" {
			mount = m
		}
	}
	if mount.SubPath != "" || common.Data["BRIDGE_CONFIG"] != mount.MountPath+"/fleet.yaml" {
		t.Errorf("%+v, %v", mount, common.Data)
	}
	if v := d.Spec.Template.Spec.Volumes; len(v) != 1 || v[0].ConfigMap == nil || v[0].ConfigMap.Name != file.Name {
		t.Errorf("%+v", v)
	}
	if other := deployment(t, render(t, values("https://b.example"))); !reflect.DeepEqual(d, other) {
		t.Error("a changed bridge restarts the pods")
	}
}
