package azure

import (
	"io"
	"net/http"
	"testing"
)

// Whether the credentials reach further than the feed shows in how another container is answered.
func TestReadsMore(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		code   string
		more   bool
	}{
		"all containers":        {200, "", true},
		"that one is not there": {404, "ContainerNotFound", true},
		"a role on the feed's":  {403, "AuthorizationPermissionMismatch", false},
		"a signature of it":     {403, "AuthenticationFailed", false},
		"unwell":                {404, "", false},
	} {
		asked := ""
		store, _ := server(t, func(w http.ResponseWriter, r *http.Request, _ int) {
			asked = r.Method + " " + r.URL.Path + " " + r.URL.Query().Get("comp")
			if c.status != 200 {
				fail(w, c.status, c.code)
				return
			}
			_, _ = io.WriteString(w, "<EnumerationResults><Blobs /></EnumerationResults>")
		})
		more, err := store.config.ReadsMore(t.Context())
		if more != c.more || err != nil || asked != "GET /acct/$logs list" {
			t.Errorf("%s: %v, %v, asked %s", name, more, err, asked)
		}
	}
}
