package config

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// The chart's settings and bridges become ConfigMaps, and a pod shows its variables, so its schema refuses every
// setting that holds a secret there.
func TestChartRefusesSecrets(t *testing.T) {
	text, err := os.ReadFile("../../deploy/helm/blobfeed-bridge/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	type refusal struct{ Not struct{ Enum []string } }
	var schema struct {
		Properties struct {
			Settings struct{ PropertyNames struct{ AllOf []refusal } }
			Bridges  struct {
				AdditionalProperties struct{ PropertyNames refusal }
			}
			ExtraEnv struct {
				Items struct {
					Not struct {
						Properties struct{ Name struct{ Enum []string } }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	of := schema.Properties
	settings := of.Settings.PropertyNames.AllOf
	for place, refused := range map[string][]string{
		"settings": settings[len(settings)-1].Not.Enum,
		"bridges":  of.Bridges.AdditionalProperties.PropertyNames.Not.Enum,
		"extraEnv": of.ExtraEnv.Items.Not.Properties.Name.Enum,
	} {
		var secrets []string
		for _, name := range SecretNames() {
			if place != "extraEnv" {
				name = strings.TrimPrefix(name, Prefix+"_")
			}
			if place == "bridges" {
				name = strings.ToLower(name)
			}
			secrets = append(secrets, name)
		}
		slices.Sort(refused)
		if slices.Sort(secrets); !slices.Equal(refused, secrets) {
			t.Errorf("the schema refuses in %s %q, want %q", place, refused, secrets)
		}
	}
}
