package check

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr/srfake"

	"blobfeed/envelope"
	"blobfeed/internal/kafka"
)

var subjects = []envelope.Subject{{Name: "t-value", Schema: `{"type":"string"}`}}

func opened(t *testing.T, r kafka.Registry) *kafka.Registry {
	t.Helper()
	r.Timeout = 5 * time.Second
	if err := r.Open(); err != nil {
		t.Fatal(err)
	}
	return &r
}

func token(text string) func() (user, password string, err error) {
	return func() (string, string, error) { return "", text, nil }
}

// Reach, credentials and schemas are checked, and nothing is registered.
func TestCheckRegistry(t *testing.T) {
	for name, tc := range map[string]struct {
		lookUp     bool
		registered string
		token      string
		path       string
		status     Status // of the last line
		says       string
	}{
		"new":          {status: OK, says: "run registers it", token: "good"},
		"new, look up": {lookUp: true, status: Failed, says: "--format schemas", token: "good"},
		"there":        {registered: subjects[0].Schema, status: OK, says: "has the schema, id", token: "good"},
		"there, look up": {lookUp: true, registered: subjects[0].Schema, status: OK, says: "has the schema, id",
			token: "good"},
		"another is":      {registered: `{"type":"int"}`, status: OK, says: "takes the schema", token: "good"},
		"bad credentials": {status: Failed, says: "BRIDGE_REGISTRY_PASSWORD", token: "bad"},
		"no registry":     {status: Failed, says: "BRIDGE_REGISTRY_URL", token: "good", path: "/nowhere"},
	} {
		fake := srfake.New(srfake.WithAuth("Bearer good"))
		if tc.registered != "" {
			first := opened(t, kafka.Registry{URLs: []string{fake.URL()}, Credentials: token("good")})
			if _, err := first.ID(t.Context(), "t-value", tc.registered); err != nil {
				t.Fatal(err)
			}
		}
		urls := []string{fake.URL() + tc.path}
		r := opened(t, kafka.Registry{URLs: urls, LookUpOnly: tc.lookUp, Credentials: token(tc.token)})
		var found Findings
		for range 2 { // the second finds what the first did
			found = nil
			found.registry(t.Context(), r, subjects)
			if last := found[len(found)-1]; last.Status != tc.status ||
				!strings.Contains(last.Detail+last.Do, tc.says) {
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
	var found Findings
	urls := []string{gone.URL(), fake.URL() + "/nowhere", fake.URL()}
	found.registry(t.Context(), opened(t, kafka.Registry{URLs: urls}), subjects)
	if found.Count(Failed) != 0 || found.Count(Warning) != 2 {
		t.Errorf("%+v", found)
	}
	found = nil
	found.registry(t.Context(), opened(t, kafka.Registry{URLs: urls[:2]}), subjects)
	if found.Count(Failed) != 2 || strings.Count(found[0].Detail, gone.URL()) != 1 {
		t.Errorf("%+v", found)
	}
}

// An answer without a body is named by its status, which is not silence.
func TestCheckRegistryAnswersNothing(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	var found Findings
	found.registry(t.Context(), opened(t, kafka.Registry{URLs: []string{server.URL}}), subjects)
	if len(found) != 1 || found[0].Detail != server.URL+": answered 404" || !strings.Contains(found[0].Do, "a path") {
		t.Errorf("%+v", found)
	}
}

// A registry that redirects gets the advice to name the address behind it.
func TestCheckRegistryRedirects(t *testing.T) {
	away := httptest.NewServer(http.RedirectHandler("https://registry.example/", http.StatusFound))
	defer away.Close()
	var found Findings
	found.registry(t.Context(), opened(t, kafka.Registry{URLs: []string{away.URL}}), subjects)
	if len(found) != 1 || found[0].Status != Failed || !strings.Contains(found[0].Do, "BRIDGE_REGISTRY_URL") {
		t.Errorf("%+v", found)
	}
}
