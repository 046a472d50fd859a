package azure

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
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

func TestAdvice(t *testing.T) {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		Config
		says []string
	}{
		"role": {Config{Auth: "default"}, nil},
		"key":  {Config{Auth: "shared_key", Key: "x"}, []string{"account key"}},
		"key in a string": {Config{Auth: "connection_string", ConnectionString: "AccountName=a;AccountKey=b"},
			[]string{"account key"}},
		"enough": {Config{Auth: "sas", SAS: "?sp=rl&se=2027-01-01T00:00:00Z&sig=x"}, nil},
		"of the account": {Config{Auth: "sas", SAS: "sp=rl&ss=b&srt=co&se=2027-01-01T00:00:00Z"},
			[]string{"all its containers"}},
		"of a container": {Config{Auth: "sas", SAS: "sp=rl&sr=c&se=2027-01-01T00:00:00Z"}, nil},
		"too much":       {Config{Auth: "sas", SAS: "sp=rwdl&se=2027-01-01T00:00:00Z"}, []string{"enough"}},
		"too little":     {Config{Auth: "sas", SAS: "sp=r&se=2027-01-01T00:00:00Z"}, []string{"needed"}},
		"ends":           {Config{Auth: "sas", SAS: "sp=rl&se=2026-05-02T00:00:00Z"}, []string{"2026-05-02"}},
		"in a string": {Config{Auth: "connection_string",
			ConnectionString: "BlobEndpoint=https://a;SharedAccessSignature=sp=rwl"}, []string{"enough"}},
	} {
		advice := c.Advice(now)
		if len(advice) != len(c.says) {
			t.Errorf("%s: %q", name, advice)
			continue
		}
		for i, part := range c.says {
			if !strings.Contains(advice[i], part) {
				t.Errorf("%s: %q", name, advice[i])
			}
		}
	}
}
