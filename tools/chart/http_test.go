package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// Nothing but the port of metrics and status is open, and that not to everybody, unless the values say so.
func TestNetworkPolicy(t *testing.T) {
	for name, objects := range map[string][]string{
		"chart": render(t, map[string]any{}), "manifests": plain(t), "full": render(t, valueSets(t)["full"]),
	} {
		var policy networkingv1.NetworkPolicy
		find(t, objects, "NetworkPolicy", &policy)
		s := policy.Spec
		if !slices.Contains(s.PolicyTypes, networkingv1.PolicyTypeIngress) ||
			len(s.Ingress) != 1 ||
			len(s.Ingress[0].Ports) != 1 || s.Ingress[0].Ports[0].Port.StrVal != "http" || len(s.Ingress[0].From) == 0 {
			t.Errorf("%s: %+v", name, s)
		}
		var pods appsv1.Deployment
		find(t, objects, "Deployment", &pods)
		for label, value := range s.PodSelector.MatchLabels {
			if pods.Spec.Template.Labels[label] != value {
				t.Errorf("%s: the policy is for pods with %s=%s", name, label, value)
			}
		}
	}
	var open networkingv1.NetworkPolicy
	find(t, render(t, map[string]any{"networkPolicy": map[string]any{"from": []any{}}}), "NetworkPolicy", &open)
	if len(open.Spec.Ingress) != 1 || open.Spec.Ingress[0].From != nil {
		t.Errorf("from: []: %+v", open.Spec)
	}
}

// The bridge may be asked for by the names of its Service, and by those of the settings.
func TestHosts(t *testing.T) {
	for name, want := range map[string]string{
		"default": "test-blobfeed-bridge.blobs,test-blobfeed-bridge.blobs.svc,test-blobfeed-bridge.blobs.svc.cluster.local",
		"full":    "test-blobfeed-bridge.blobs,test-blobfeed-bridge.blobs.svc,test-blobfeed-bridge.blobs.svc.cluster.local,bridge.example.com",
	} {
		var settings corev1.ConfigMap
		find(t, render(t, valueSets(t)[name]), "ConfigMap", &settings)
		if have := settings.Data["BRIDGE_HTTP_HOSTS"]; have != want {
			t.Errorf("%s: %s", name, have)
		}
	}
}

// With a certificate the probes speak TLS, and the scraper knows its authority; with a token it bears that.
func TestHTTPS(t *testing.T) {
	for name, want := range map[string]corev1.URIScheme{
		"default": corev1.URISchemeHTTP, "full": corev1.URISchemeHTTPS,
	} {
		c := deployment(t, render(t, valueSets(t)[name])).Spec.Template.Spec.Containers[0]
		for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
			if probe.HTTPGet.Scheme != want {
				t.Errorf("%s: %+v", name, probe)
			}
		}
	}
	var monitor struct {
		Spec struct {
			Endpoints []struct {
				Scheme    string
				TLSConfig struct {
					ServerName string
					CA         struct{ Secret struct{ Name, Key string } }
				} `json:"tlsConfig"`
				Authorization struct{ Credentials struct{ Name, Key string } }
			}
		}
	}
	find(t, render(t, valueSets(t)["full"]), "ServiceMonitor", &monitor)
	if len(monitor.Spec.Endpoints) != 1 {
		t.Fatalf("%+v", monitor)
	}
	e := monitor.Spec.Endpoints[0]
	if e.Scheme != "https" || e.TLSConfig.ServerName != "test-blobfeed-bridge.blobs.svc" ||
		e.TLSConfig.CA.Secret.Key != "ca.crt" ||
		e.Authorization.Credentials.Name != "bridge-http" ||
		e.Authorization.Credentials.Key != "token" {
		t.Errorf("%+v", e)
	}
}

// find reads the object of a kind into its type. Of the maps it is that of the settings.
func find(t *testing.T, objects []string, kind string, into any) {
	t.Helper()
	for _, o := range objects {
		if kindOf(t, o) == kind && !strings.Contains(o, "-dashboard") {
			if err := yaml.Unmarshal([]byte(o), into); err != nil {
				t.Fatalf("%v in\n%s", err, o)
			}
			return
		}
	}
	t.Fatalf("there is no %s in\n%s", kind, strings.Join(objects, "\n---\n"))
}

// A second release verifies the topic as it grows.
func TestFollower(t *testing.T) {
	for _, args := range [][]any{{"run"}, {"verify", "--feed", "--follow"}} {
		values := map[string]any{"args": args}
		if args[0] == "run" {
			values = map[string]any{} // the default
		}
		var d appsv1.Deployment
		find(t, render(t, values), "Deployment", &d)
		if have := d.Spec.Template.Spec.Containers[0].Args; fmt.Sprint(have) != fmt.Sprint(args) {
			t.Errorf("the program gets %q, want %q", have, args)
		}
	}
}
