package check

import (
	"strings"
	"testing"
	"time"

	"blobfeed/source/azure"
)

// Credentials that may do more than read the feed, and signatures that end soon, get a warning.
func TestCredentials(t *testing.T) {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		azure.Config
		says []string
	}{
		"role": {azure.Config{Auth: "default"}, nil},
		"key":  {azure.Config{Auth: "shared_key", Key: "x"}, []string{"account key"}},
		"key in a string": {azure.Config{Auth: "connection_string", ConnectionString: "AccountName=a;AccountKey=b"},
			[]string{"account key"}},
		"enough": {azure.Config{Auth: "sas", SAS: "?sp=rl&se=2027-01-01T00:00:00Z&sig=x"}, nil},
		"of the account": {azure.Config{Auth: "sas", SAS: "sp=rl&ss=b&srt=co&se=2027-01-01T00:00:00Z"},
			[]string{"all its containers"}},
		"of a container": {azure.Config{Auth: "sas", SAS: "sp=rl&sr=c&se=2027-01-01T00:00:00Z"}, nil},
		"too much":       {azure.Config{Auth: "sas", SAS: "sp=rwdl&se=2027-01-01T00:00:00Z"}, []string{"enough"}},
		"too little":     {azure.Config{Auth: "sas", SAS: "sp=r&se=2027-01-01T00:00:00Z"}, []string{"needed"}},
		"expired": {azure.Config{Auth: "sas", SAS: "sp=rl&se=2026-05-01T00:00:00Z"},
			[]string{"the signature expired at 2026-05-01T00:00:00Z; replace it"}},
		"begins": {azure.Config{Auth: "sas", SAS: "sp=rl&st=2026-05-01T01:00Z"},
			[]string{"the signature is not valid before 2026-05-01T01:00:00Z"}},
		"ends": {azure.Config{Auth: "sas", SAS: "sp=rl&se=2026-05-02T00:00:00Z"}, []string{"2026-05-02"}},
		"in a string": {azure.Config{Auth: "connection_string",
			ConnectionString: "BlobEndpoint=https://a;SharedAccessSignature=sp=rwl"}, []string{"enough"}},
	} {
		advice := credentials(&c.Config, false, now)
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

// The advice does not take away the rights that a scan needs.
func TestCredentialsOfScan(t *testing.T) {
	signature := azure.Config{Auth: "sas", SAS: "sp=rl&ss=b&srt=co"}
	if advice := credentials(&signature, true, time.Now()); len(advice) > 0 {
		t.Errorf("a signature of the account: %q", advice)
	}
	key := azure.Config{Auth: "shared_key", Key: "x"}
	advice := credentials(&key, true, time.Now())
	if len(advice) != 1 || strings.Contains(advice[0], azure.Container) {
		t.Errorf("a key: %q", advice)
	}
}
