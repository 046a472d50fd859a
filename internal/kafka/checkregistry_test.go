package kafka

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr/srfake"

	"blobfeed/internal/check"
)

// Reach, credentials and schemas are told, and nothing is registered.
func TestCheckRegistry(t *testing.T) {
	const schema = `{"type":"string"}`
	for name, tc := range map[string]struct {
		lookUp     bool
		registered string
		token      string
		path       string
		status     check.Status // of the last line
		says       string
	}{
		"new":             {status: check.OK, says: "run registers it", token: "good"},
		"new, look up":    {lookUp: true, status: check.Failed, says: "--format schemas", token: "good"},
		"there":           {registered: schema, status: check.OK, says: "has the schema, id", token: "good"},
		"there, look up":  {lookUp: true, registered: schema, status: check.OK, says: "has the schema, id", token: "good"},
		"another is":      {registered: `{"type":"int"}`, status: check.OK, says: "takes the schema", token: "good"},
		"bad credentials": {status: check.Failed, says: "BRIDGE_REGISTRY_TOKEN", token: "bad"},
		"no registry":     {status: check.Failed, says: "BRIDGE_REGISTRY_URL", token: "good", path: "/nowhere"},
	} {
		fake := srfake.New(srfake.WithAuth("Bearer good"))
		if tc.registered != "" {
			first := Registry{URLs: []string{fake.URL()}, Timeout: 5 * time.Second, Credentials: func() (string, string, string, error) { return "", "", "good", nil }}
			if err := first.Open(); err != nil {
				t.Fatal(err)
			}
			if _, err := first.ID(t.Context(), "t-value", tc.registered); err != nil {
				t.Fatal(err)
			}
		}
		r := Registry{URLs: []string{fake.URL() + tc.path}, LookUpOnly: tc.lookUp, Timeout: 5 * time.Second, Credentials: func() (string, string, string, error) { return "", "", tc.token, nil }}
		if err := r.Open(); err != nil {
			t.Fatal(err)
		}
		var found check.Findings
		for range 2 { // the second finds what the first did
			found = nil
			CheckRegistry(t.Context(), &r, []Schema{{"t-value", schema}}, &found)
			if last := found[len(found)-1]; last.Status != tc.status || !strings.Contains(last.Detail+last.Do, tc.says) {
				t.Errorf("%s: %+v", name, found)
			}
		}
		fake.Close()
	}
}

// Of several addresses one that answers is enough, as it is for run.
func TestCheckOneRegistryOfSeveral(t *testing.T) {
	gone, fake := srfake.New(), srfake.New()
	gone.Close()
	defer fake.Close()
	var found check.Findings
	urls := []string{gone.URL(), fake.URL() + "/nowhere", fake.URL()}
	CheckRegistry(t.Context(), opened(t, Registry{URLs: urls}), []Schema{{"t-value", schema}}, &found)
	if found.Count(check.Failed) != 0 || found.Count(check.Warning) != 2 {
		t.Errorf("%+v", found)
	}
	found = nil
	CheckRegistry(t.Context(), opened(t, Registry{URLs: urls[:2]}), []Schema{{"t-value", schema}}, &found)
	if found.Count(check.Failed) != 2 {
		t.Errorf("%+v", found)
	}
}
