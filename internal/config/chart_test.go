package config

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// The chart's settings become a ConfigMap, so its schema refuses every setting that holds a secret.
func TestChartRefusesSecrets(t *testing.T) {
	text, err := os.ReadFile("../../deploy/helm/blobfeed-bridge/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties struct {
			Settings struct {
				PropertyNames struct {
					AllOf []struct{ Not struct{ Enum []string } }
				}
			}
		}
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	var refused []string
	for _, rule := range schema.Properties.Settings.PropertyNames.AllOf {
		refused = append(refused, rule.Not.Enum...)
	}
	var secrets []string
	for _, name := range SecretNames() {
		secrets = append(secrets, strings.TrimPrefix(name, Prefix+"_"))
	}
	slices.Sort(refused)
	if slices.Sort(secrets); !slices.Equal(refused, secrets) {
		t.Errorf("the schema refuses %q, want %q", refused, secrets)
	}
}
