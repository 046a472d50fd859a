package azure

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// soon is how long before the end of a signature there is a warning.
const soon = 7 * 24 * time.Hour

// elsewhere is a container that has nothing to do with the feed; it need not exist.
const elsewhere = "$logs"

// ReadsMore reports whether the credentials may read other containers than the feed's. It asks for one line of a
// listing.
func (c *Config) ReadsMore(ctx context.Context) (bool, error) {
	cl, _, err := c.client(elsewhere)
	if err != nil {
		return false, err
	}
	_, err = cl.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{MaxResults: to.Ptr[int32](1)}).NextPage(ctx)
	var status *azcore.ResponseError
	switch {
	case err == nil, bloberror.HasCode(err, bloberror.ContainerNotFound): // rights are looked at first
		return true, nil
	case errors.As(err, &status):
		return false, nil
	}
	return false, explain(err)
}

// Advice returns warnings about credentials that may still work: rights that reading the feed does not need, and a
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
		return []string{"an account key may do everything with the account; the role Storage Blob Data Reader on " +
			"the container " + Container + ", or a signature of it with read and list, is enough"}
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
	if q.Has("srt") {
		advice = append(advice,
			"the signature is of the account, all its containers included; one of the container "+Container+
				" is enough")
	}
	for _, need := range "rl" {
		if sp := q.Get("sp"); sp != "" && !strings.ContainsRune(sp, need) {
			advice = append(advice, fmt.Sprintf("the signature permits %q only; r (read) and l (list) are needed", sp))
		}
	}
	if end, err := time.Parse(time.RFC3339, q.Get("se")); err == nil && end.Sub(now) < soon {
		advice = append(advice, fmt.Sprintf("the signature ends at %s; replace its file in time, it is read again",
			end.Format(time.RFC3339)))
	}
	return advice
}
