package check

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"blobfeed/internal/plain"
	"blobfeed/source/azure"
)

// soon is the time before the end of credentials from which on a check warns.
const soon = 7 * 24 * time.Hour

// rights reports what the credentials for the feed may do more than they need, and a signature that ends soon.
// A scan reads the whole account.
func (fs *Findings) rights(ctx context.Context, c *azure.Config, scans bool, now time.Time) {
	advice := credentials(c, scans, now)
	for _, text := range advice {
		fs.Add("rights", Warning, text, "")
	}
	if len(advice) > 0 || scans || c.Auth == "anonymous" || fs.Count(Failed) > 0 {
		return
	}
	more, err := c.ReadsMore(ctx)
	switch {
	case err != nil:
		fs.Add("rights", Warning, "asking for another container than the feed's: "+err.Error(), "")
	case more:
		fs.Add("rights", Warning, "the credentials may read other containers than "+azure.Container,
			"give them the role on that container alone: "+azure.Grant)
	default:
		fs.Add("rights", OK, "the credentials may read no other container than "+azure.Container, "")
	}
}

// version says which version of the protocol the account speaks. Not every account knows the same ones.
func (fs *Findings) version(ctx context.Context, c *azure.Config) {
	if fs.Count(Failed) > 0 {
		return
	}
	if version, err := c.Version(ctx); !fs.unreadable("version", err) {
		fs.Add("version", OK, "the account answers with version "+version+" of the Blob service", "")
	}
}

// credentials says what is wrong with the credentials themselves, although they may work.
func credentials(c *azure.Config, scans bool, now time.Time) (advice []string) {
	place := "the container " + azure.Container
	if scans {
		place = "the account"
	}
	sas := c.SAS
	if c.Auth == "connection_string" {
		sas = plain.ConnectionPart(c.ConnectionString, "SharedAccessSignature")
	}
	switch {
	case c.Auth == "shared_key", c.Auth == "connection_string" && sas == "":
		return []string{"an account key may do everything with the account; the role Storage Blob Data Reader on " +
			place + ", or a signature of it with read and list, is enough"}
	case c.Auth != "sas" && c.Auth != "connection_string":
		return nil
	}
	q, err := url.ParseQuery(strings.TrimPrefix(strings.TrimSpace(sas), "?"))
	if err != nil {
		return []string{"the signature is not a query string"}
	}
	permits := q.Get("sp")
	if more := strings.Trim(permits, "rl"); more != "" {
		advice = append(advice, fmt.Sprintf("the signature permits %q; r (read) and l (list) are enough", permits))
	}
	if q.Has("srt") && !scans {
		advice = append(advice, "the signature is of the account with all its containers; one of the container "+
			azure.Container+" is enough")
	}
	for _, need := range "rl" {
		if permits != "" && !strings.ContainsRune(permits, need) {
			advice = append(advice,
				fmt.Sprintf("the signature permits only %q; r (read) and l (list) are needed", permits))
		}
	}
	if end, err := time.Parse(time.RFC3339, q.Get("se")); err == nil && end.Sub(now) < soon {
		advice = append(advice, fmt.Sprintf("the signature ends at %s; replace its file in time, it is read again",
			end.Format(time.RFC3339)))
	}
	return advice
}
