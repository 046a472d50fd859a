package azure

import (
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// observer reports the requests that pass.
type observer func(op string, status int, took time.Duration, received int64)

// Do implements policy.Policy.
func (o observer) Do(req *policy.Request) (*http.Response, error) {
	op := "read"
	if req.Raw().URL.Query().Get("comp") == "list" {
		op = "list"
	}
	began := time.Now()
	resp, err := req.Next()
	status, received := 0, int64(0)
	if resp != nil {
		status, received = resp.StatusCode, resp.ContentLength // of a body that breaks off some is missing
	}
	o(op, status, time.Since(began), received)
	return resp, err
}
