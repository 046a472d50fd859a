package azure

import (
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// observer reports every request.
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
		status, received = resp.StatusCode, resp.ContentLength // a body that breaks off has fewer
	}
	o(op, status, time.Since(began), received)
	return resp, err
}
