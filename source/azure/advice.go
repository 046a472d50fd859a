package azure

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// soon is when the end of a signature is worth a word.
const soon = 7 * 24 * time.Hour

// Advice says what is wrong with how c gets in, although it may work: rights that reading the feed does not need, and a
// signature that ends soon.
func (c *Config) Advice(now time.Time) (advice []string) {
	sas := c.SAS
	if c.Auth == "connection_string" {
		for part := range strings.SplitSeq(c.ConnectionString, ";") {
			if s, ok := strings.CutPrefix(part, "SharedAccessSignature="); ok {
				sas = s
			}
		}
	}
	switch {
	case c.Auth == "shared_key", c.Auth == "connection_string" && sas == "":
		return []string{"an account key may do everything with the account; the role Storage Blob Data Reader, or a signature with read and list, is enough"}
	case c.Auth != "sas" && c.Auth != "connection_string":
		return nil
	}
	q, err := url.ParseQuery(strings.TrimPrefix(strings.TrimSpace(sas), "?"))
	if err != nil {
		return []string{"the signature is no query string"}
	}
	if more := strings.Trim(q.Get("sp"), "rl"); more != "" {
		advice = append(advice, fmt.Sprintf("the signature permits %q; r (read) and l (list) are enough", q.Get("sp")))
	}
	for _, need := range "rl" {
		if sp := q.Get("sp"); sp != "" && !strings.ContainsRune(sp, need) {
			advice = append(advice, fmt.Sprintf("the signature permits %q only; r (read) and l (list) are needed", sp))
		}
	}
	if end, err := time.Parse(time.RFC3339, q.Get("se")); err == nil && end.Sub(now) < soon {
		advice = append(advice, fmt.Sprintf("the signature ends at %s; replace its file in time, it is read again", end.Format(time.RFC3339)))
	}
	return advice
}
