package azure

import (
	"strings"
	"testing"
	"time"
)

func TestAdvice(t *testing.T) {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		Config
		says []string
	}{
		"role":            {Config{Auth: "default"}, nil},
		"key":             {Config{Auth: "shared_key", Key: "x"}, []string{"account key"}},
		"key in a string": {Config{Auth: "connection_string", ConnectionString: "AccountName=a;AccountKey=b"}, []string{"account key"}},
		"enough":          {Config{Auth: "sas", SAS: "?sp=rl&se=2027-01-01T00:00:00Z&sig=x"}, nil},
		"too much":        {Config{Auth: "sas", SAS: "sp=rwdl&se=2027-01-01T00:00:00Z"}, []string{"enough"}},
		"too little":      {Config{Auth: "sas", SAS: "sp=r&se=2027-01-01T00:00:00Z"}, []string{"needed"}},
		"ends":            {Config{Auth: "sas", SAS: "sp=rl&se=2026-05-02T00:00:00Z"}, []string{"2026-05-02"}},
		"in a string":     {Config{Auth: "connection_string", ConnectionString: "BlobEndpoint=https://a;SharedAccessSignature=sp=rwl"}, []string{"enough"}},
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
