package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

const (
	chartDir  = "../../deploy/helm/blobfeed-bridge"
	plainDir  = "../../deploy/kubernetes"
	namespace = "blobs"
)

func TestLint(t *testing.T) {
	for name, values := range valueSets(t) {
		for _, m := range lint.AllWithKubeVersion(chartDir, values, namespace,
			&chartutil.KubeVersion{Version: "v1.31.0", Major: "1", Minor: "31"}).Messages {
			if m.Severity >= support.WarningSev {
				t.Errorf("%s: %s", name, m)
			}
		}
	}
}

// Every object is one that Kubernetes takes, field by field.
func TestObjects(t *testing.T) {
	for name, values := range valueSets(t) {
		kinds := map[string]int{}
		for _, object := range render(t, values) {
			kinds[read(t, object)]++
		}
		want := map[string]int{
			"ConfigMap":           1,
			"Deployment":          1,
			"NetworkPolicy":       1,
			"PodDisruptionBudget": 1,
			"Service":             1,
			"ServiceAccount":      1,
		}
		if name == "full" {
			want["ServiceMonitor"], want["ScaledObject"], want["PrometheusRule"], want["ConfigMap"] = 1, 1, 1, 2
		}
		if fmt.Sprint(kinds) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", name, kinds, want)
		}
	}
}

// The container may do nothing but what it is for, whatever the values.
func TestHardened(t *testing.T) {
	var deployments []*appsv1.Deployment
	for _, values := range valueSets(t) {
		deployments = append(deployments, deployment(t, render(t, values)))
	}
	for _, d := range append(deployments, deployment(t, plain(t))) {
		pod := d.Spec.Template.Spec
		c := pod.Containers[0]
		if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot ||
			s.RunAsUser != nil && *s.RunAsUser != 65532 ||
			s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: pod %+v", d.Name, s)
		}
		if s := c.SecurityContext; s == nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem ||
			!slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Errorf("%s: container %+v", d.Name, s)
		}
		if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken || *pod.EnableServiceLinks {
			t.Errorf("%s: the pod gets a token of the cluster's, or variables of its services", d.Name)
		}
		for name, probe := range map[string]*corev1.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
			if probe == nil || probe.HTTPGet.Path != name {
				t.Errorf("%s: probe %+v", d.Name, probe)
			}
		}
		if c.StartupProbe == nil || *pod.TerminationGracePeriodSeconds <= 10 || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s: no startup probe, too little time to stop, or no limit of memory", d.Name)
		}
		for i, e := range c.Env {
			if e.Name == "" || slices.ContainsFunc(c.Env[:i], func(o corev1.EnvVar) bool { return o.Name == e.Name }) {
				t.Errorf("%s: variable %q is set twice", d.Name, e.Name)
			}
		}
	}
}

// Settings arrive as they were written, secrets as files, and Entra ID's labels are where its webhook looks.
func TestValues(t *testing.T) {
	objects := render(t, valueSets(t)["full"])
	d := deployment(t, objects)
	var settings corev1.ConfigMap
	var account corev1.ServiceAccount
	for _, o := range objects {
		switch kindOf(t, o) {
		case "ConfigMap":
			if strings.Contains(o, "BRIDGE_") {
				strict(t, o, &settings)
			}
		case "ServiceAccount":
			strict(t, o, &account)
		}
	}
	for name, want := range map[string]string{
		"BRIDGE_TXN_BYTES": "100000000", "BRIDGE_KAFKA_TLS_ENABLED": "true", "BRIDGE_KAFKA_BROKERS": "kafka:9093",
	} {
		if settings.Data[name] != want {
			t.Errorf("%s is %q, want %q", name, settings.Data[name], want)
		}
	}
	env := map[string]string{}
	for _, e := range d.Spec.Template.Spec.Containers[0].Env {
		env[e.Name] = e.Value
	}
	for name, want := range map[string]string{
		"BRIDGE_KAFKA_SASL_PASSWORD_FILE": "password", "BRIDGE_KAFKA_TLS_CA_FILE": "ca.crt",
	} {
		mounted := slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].VolumeMounts,
			func(m corev1.VolumeMount) bool {
				return env[name] == m.MountPath+"/"+want && m.SubPath == "" && // a subPath would not follow a rotation
					slices.ContainsFunc(d.Spec.Template.Spec.Volumes,
						func(v corev1.Volume) bool { return v.Name == m.Name && v.Secret.Items[0].Path == want })
			})
		if !mounted {
			t.Errorf("%s is %q, which is not mounted", name, env[name])
		}
	}
	if d.Spec.Replicas != nil {
		t.Error("KEDA and the deployment both say how many instances there are")
	}
	if d.Spec.Template.Labels["azure.workload.identity/use"] != "true" ||
		account.Annotations["azure.workload.identity/client-id"] == "" {
		t.Errorf("labels %v, annotations %v", d.Spec.Template.Labels, account.Annotations)
	}
	if image := d.Spec.Template.Spec.Containers[0].Image; !strings.Contains(image, "@sha256:") {
		t.Errorf("image %s", image)
	}
}

func TestPlainManifests(t *testing.T) {
	kinds := map[string]int{}
	for _, object := range plain(t) {
		kinds[read(t, object)]++
	}
	want := map[string]int{
		"Namespace":           1,
		"ConfigMap":           1,
		"Deployment":          1,
		"NetworkPolicy":       1,
		"PodDisruptionBudget": 1,
		"Service":             1,
		"ServiceAccount":      1,
	}
	if fmt.Sprint(kinds) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", kinds, want)
	}
}

// Every variable that is set is one that the bridge knows.
func TestSettingsAreKnown(t *testing.T) {
	reference, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, values := range valueSets(t) {
		text.WriteString(strings.Join(render(t, values), "\n"))
	}
	text.WriteString(strings.Join(plain(t), "\n"))
	for _, unit := range []string{"blobfeed-bridge.service", "bridge.env", "kafka-password.conf"} {
		b, err := os.ReadFile("../../deploy/systemd/" + unit)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(b)
	}
	for _, name := range regexp.MustCompile(`BRIDGE_[A-Z_]+`).FindAllString(text.String(), -1) {
		if !strings.Contains(string(reference), "`"+name+"`") &&
			!strings.Contains(string(reference), "`"+strings.TrimSuffix(name, "_FILE")+"`") {
			t.Errorf("%s is no setting", name)
		}
	}
}

// Values that would have no effect are refused, not ignored.
func TestMisspeltValues(t *testing.T) {
	c, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	for text, good := range map[string]bool{
		"settings: {TOPIC: x, TOPIC_LIMIT: 5, TOPIC_ADOPT: true}": true, "setings: {}": false,
		"settings: {BRIDGE_TOPIC: x}": false, "settings: {topic: x}": false,
		"settings: {KAFKA_SASL_PASSWORD: x}": false, "settings: {SOURCE_KEY: x}": false,
		"settings: {SOURCE_KEY_FILE: /run/key}": true,
		"settings: {TOPIC: [x]}":                false, "keda: {enable: true}": false, "keda: {minReplicas: 1}": true,
		"keda: {minReplicas: 0}": false, "secrets: [{setting: X, name: y, key: z}]": false,
		"terminationGracePeriodSeconds: 5":      false,
		"podSecurityContext: {runAsUser: null}": true, "podSecurityContext: {runAsNonRoot: false}": false,
		"securityContext: {readOnlyRootFilesystem: false}": false, "securityContext: {privileged: true}": false,
		"strategy: {type: Parallel}": false, "keda: {authenticationRef: {nam: x}}": false,
		"dashboard: {enable: true}": false,
		"bridges: {a: {source_url: x, tls_enabled: true, prefixes: [a], topic_partitions: 6}, b: null}": true,
		"bridges: {a: {source_key: x}}": false, "bridges: {a: {SOURCE_URL: x}}": false, "bridges: [a]": false,
		"bridges: {a: {kafka_sasl_password: x}}": false, "bridges: {a: {registry_password: x}}": false,
		"bridges: {a: {source_url: 'https://a/?sv=1&sig=x'}}":                                 false,
		"settings: {SOURCE_URL: 'https://a/?sv=1&sig=x'}":                                     false,
		"settings: {REGISTRY_URL: 'https://user:word@registry:8081'}":                         false,
		"settings: {SOURCE_URL: 'https://a.blob.core.windows.net', KAFKA_BROKERS: 'k:1'}":     true,
		"extraEnv: [{name: BRIDGE_HTTP_TOKEN, value: x}]":                                     false,
		"extraEnv: [{name: BRIDGE_HTTP_TOKEN, valueFrom: {secretKeyRef: {name: a, key: b}}}]": true,
		"extraEnv: [{name: SSL_CERT_FILE, value: x}]":                                         true,
		"bridges: {a: {source_sas_file: /run/sas}}":                                           true, "bridges: {a: {txn_bytes: 100000000}}": false,
	} {
		values, err := chartutil.ReadValues([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		merged, err := chartutil.CoalesceValues(c, values)
		if err != nil {
			t.Fatal(err)
		}
		if err := chartutil.ValidateAgainstSchema(c, merged); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A name that the bridge does not know is refused before a pod starts with it. The chart has the names of the reference.
func TestUnknownSettings(t *testing.T) {
	var names strings.Builder
	for _, name := range regexp.MustCompile("(?m)^- `BRIDGE_([A-Z0-9_]+)`").FindAllStringSubmatch(
		file(t, "../../docs/configuration.md"), -1) {
		names.WriteString(name[1] + "\n")
	}
	if names.String() != file(t, chartDir+"/files/settings") {
		t.Error("the chart's files/settings is stale: run make docs")
	}
	for unknown, text := range map[string]string{
		"KAFKA_BROKER":       "settings: {KAFKA_BROKER: 'k:9092'}",
		"KAFKA_SASL_PASSWRD": "secrets: [{setting: KAFKA_SASL_PASSWRD, secret: a, key: b}]",
		"KAFKA_TLS_CA":       "files: [{setting: KAFKA_TLS_CA, secret: a, key: b}]",
		"TOPIC_PARTITION":    "bridges: {a: {topic_partition: 6}, b: null}",
		"":                   "bridges: {a: {source_sas_file: /run/sas}}\nfiles: [{setting: KAFKA_TLS_CA_FILE, secret: a, key: b}]",
	} {
		values, err := chartutil.ReadValues([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		_, err = release(t, "test", values)
		if (err == nil) != (unknown == "") ||
			err != nil && !strings.Contains(err.Error(), "there is no setting "+unknown+":") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What the chart prints after an installation works there: with many bridges, check needs --all or a name.
func TestNotes(t *testing.T) {
	const many, one = "/bridge check --all\n", "/bridge check\n"
	for values, want := range map[string][]string{
		"settings: {SOURCE_URL: 'https://a', KAFKA_BROKERS: 'k:1'}": {"The bridge reads https://a and writes to k:1.", one},
		"bridges: {b: {}, a: {}}\nsettings: {KAFKA_BROKERS: 'k:1'}": {"The bridges a, b write to k:1.", many},
		"bridges: {b: {}, a: {}}\nsettings: {NAME: a}":              {"settings.KAFKA_BROKERS is not set", one},
	} {
		c, err := loader.Load(chartDir)
		if err != nil {
			t.Fatal(err)
		}
		given, err := chartutil.ReadValues([]byte(values))
		if err != nil {
			t.Fatal(err)
		}
		all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: "test"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		files, err := engine.Render(c, all)
		if err != nil {
			t.Fatal(err)
		}
		notes := files["blobfeed-bridge/templates/NOTES.txt"]
		for _, part := range want {
			if !strings.Contains(notes, part) || strings.Contains(notes, "SOURCE_URL") {
				t.Errorf("%s: no %q in\n%s", values, part, notes)
			}
		}
	}
}

// An address that probes, Service and metrics do not know is refused, and it is said what to do.
func TestOnePort(t *testing.T) {
	for _, address := range []string{":9090", "off", ":8080"} {
		_, err := release(t, "test", map[string]any{"settings": map[string]any{"HTTP_ADDR": address}})
		if err == nil || !strings.Contains(err.Error(), "Set http.port") {
			t.Errorf("HTTP_ADDR %s: %v", address, err)
		}
	}
}

// A release scales with its own lag. job is the name of the Service that is scraped, where a ServiceMonitor
// names no label for it.
func TestScalesWithItsOwnLag(t *testing.T) {
	for _, name := range []string{"a", "b"} {
		objects, err := release(t, name, valueSets(t)["full"])
		if err != nil {
			t.Fatal(err)
		}
		var service corev1.Service
		var scaled struct {
			Spec struct {
				Triggers []struct{ Metadata struct{ Query string } }
			}
		}
		for _, o := range objects {
			switch kindOf(t, o) {
			case "Service":
				strict(t, o, &service)
			case "ServiceMonitor":
				if strings.Contains(o, "jobLabel") {
					t.Errorf("another job than the Service's name:\n%s", o)
				}
			case "ScaledObject":
				if err := yaml.Unmarshal([]byte(o), &scaled); err != nil {
					t.Fatal(err)
				}
			}
		}
		want := fmt.Sprintf("max(blobfeed_lag_seconds{part=%q, namespace=%q, job=%q})", "bridge", namespace,
			service.Name)
		if len(scaled.Spec.Triggers) != 1 || scaled.Spec.Triggers[0].Metadata.Query != want {
			t.Errorf("%s: %+v, want %s", name, scaled, want)
		}
	}
}

// valueSets are those of the chart and all of ci/.
func valueSets(t *testing.T) map[string]map[string]any {
	t.Helper()
	sets := map[string]map[string]any{"default": {}}
	files, err := filepath.Glob(chartDir + "/ci/*-values.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		values, err := chartutil.ReadValuesFile(f)
		if err != nil {
			t.Fatal(err)
		}
		sets[strings.TrimSuffix(filepath.Base(f), "-values.yaml")] = values
	}
	return sets
}

func render(t *testing.T, values map[string]any) []string {
	t.Helper()
	objects, err := release(t, "test", values)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// release returns the objects of a release, or why the chart refuses the values.
func release(t *testing.T, name string, values map[string]any) (objects []string, _ error) {
	t.Helper()
	c, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(c, values,
		chartutil.ReleaseOptions{Name: name, Namespace: namespace, IsInstall: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(c, all)
	for name, text := range files {
		if strings.HasSuffix(name, ".yaml") {
			objects = append(objects, split(text)...)
		}
	}
	return objects, err
}

func plain(t *testing.T) (objects []string) {
	t.Helper()
	files, err := filepath.Glob(plainDir + "/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, split(string(text))...)
	}
	return objects
}

func split(text string) (objects []string) {
	for object := range strings.SplitSeq(text, "\n---\n") {
		if strings.TrimSpace(object) != "" {
			objects = append(objects, object)
		}
	}
	return objects
}

func kindOf(t *testing.T, object string) string {
	t.Helper()
	var o struct{ Kind string }
	if err := yaml.Unmarshal([]byte(object), &o); err != nil {
		t.Fatalf("%v in\n%s", err, object)
	}
	return o.Kind
}

func strict(t *testing.T, object string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(object), into); err != nil {
		t.Fatalf("%v in\n%s", err, object)
	}
}

// read reads an object into its type and returns its kind. Those of operators have no type here.
func read(t *testing.T, object string) string {
	t.Helper()
	kind := kindOf(t, object)
	into := map[string]any{
		"ConfigMap": &corev1.ConfigMap{}, "Service": &corev1.Service{}, "ServiceAccount": &corev1.ServiceAccount{},
		"Namespace":  &corev1.Namespace{},
		"Deployment": &appsv1.Deployment{}, "PodDisruptionBudget": &policyv1.PodDisruptionBudget{},
		"NetworkPolicy":  &networkingv1.NetworkPolicy{},
		"ServiceMonitor": &map[string]any{}, "ScaledObject": &map[string]any{}, "PrometheusRule": &rules{},
	}[kind]
	if into == nil {
		t.Fatalf("kind %q in\n%s", kind, object)
	}
	strict(t, object, into)
	return kind
}

func deployment(t *testing.T, objects []string) *appsv1.Deployment {
	t.Helper()
	for _, o := range objects {
		if kindOf(t, o) == "Deployment" {
			d := new(appsv1.Deployment)
			strict(t, o, d)
			return d
		}
	}
	t.Fatal("there is no Deployment")
	return nil
}
