package azure

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"blobfeed/source"
)

// recordedAnswer is an error that the real service has sent. Bodies begin with a byte order mark, and Retry-After is 0.
type recordedAnswer struct {
	Status  int
	Code    string
	Method  string
	Headers map[string]string
	Body    string
}

func recordedAnswers(t *testing.T) (all []recordedAnswer) {
	t.Helper()
	text, err := os.ReadFile("testdata/errors/recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &all); err != nil || len(all) != 35 {
		t.Fatalf("%d answers, %v", len(all), err)
	}
	return all
}

// send sends the answer as it was recorded, chunked if it says so.
func (a *recordedAnswer) send(w http.ResponseWriter) {
	for k, v := range a.Headers {
		if !strings.EqualFold(k, "Content-Length") && !strings.EqualFold(k, "Transfer-Encoding") &&
			!strings.EqualFold(k, "Connection") {
			w.Header().Set(k, v)
		}
	}
	w.WriteHeader(a.Status)
	if strings.EqualFold(a.Headers["Transfer-Encoding"], "chunked") {
		_ = http.NewResponseController(w).Flush()
	}
	_, _ = io.WriteString(w, a.Body)
}

// realAccount returns the settings of a real account's address, which a server of ours answers for.
func realAccount(t *testing.T, answer func(http.ResponseWriter)) (_ Config, requests func() int) {
	t.Helper()
	s, requests := server(t, func(w http.ResponseWriter, _ *http.Request, _ int) { answer(w) })
	u, err := url.Parse(s.config.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	c := s.config
	c.Endpoint, c.Transport = "https://acct.blob.core.windows.net", routed(u.Host)
	return c, requests
}

// routed sends every request to a server of ours.
type routed string

// Do implements policy.Transporter.
func (r routed) Do(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	out.URL.Scheme, out.URL.Host = "http", string(r)
	resp, err := http.DefaultTransport.RoundTrip(out)
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

// What the recorded answers mean for a read of the feed: which are retried, which say that a blob or the feed is not
// there, and what the operator is told to do.
func TestRecordedAnswers(t *testing.T) {
	const once, retried = 1, 4
	for code, want := range map[string]struct {
		requests int
		is       error
		text     string // of the error
		key, sas string // what to do, with each way to authenticate
	}{
		"InvalidHeaderValue":         {once, nil, "400 InvalidHeaderValue", "check the account", "check the account"},
		"InvalidQueryParameterValue": {once, nil, "400 InvalidQueryParameterValue", "check the account", "check the account"},
		"OutOfRangeQueryParameterValue": {once, nil, "400 OutOfRangeQueryParameterValue", "check the account",
			"check the account"},
		"InvalidResourceName":       {once, nil, "400 InvalidResourceName", "check the account", "check the account"},
		"InvalidAuthenticationInfo": {once, nil, "400 InvalidAuthenticationInfo", "check the account", "check the account"},
		"AuthenticationFailed": {once, nil, "403 AuthenticationFailed", "set Key to a key",
			"set SAS to a signature"},
		"AuthorizationPermissionMismatch": {once, nil, "403 AuthorizationPermissionMismatch",
			"check the account and its key", "the permissions r (read) and l (list)"},
		"AuthorizationFailure": {once, nil, "403 AuthorizationFailure", "network rules of the storage account",
			"network rules of the storage account"},
		"ContainerNotFound":     {once, source.ErrNoFeed, "", "enable the feed", "enable the feed"},
		"ContainerBeingDeleted": {once, source.ErrNoFeed, "", "enable the feed", "enable the feed"},
		"BlobNotFound":          {once, source.ErrNotFound, "", "", ""},
		"ResourceNotFound":      {once, nil, "404 ResourceNotFound", "check the account", "check the account"},
		"ConditionNotMet":       {once, nil, "412 ConditionNotMet", "", ""},
		"InvalidRange":          {once, nil, "", "", ""}, // the end of the blob, which is no error
		"ServerBusy":            {retried, nil, "503 ServerBusy", "", ""},
		"OperationTimedOut":     {retried, nil, "500 OperationTimedOut", "", ""},
	} {
		found := false
		for _, a := range recordedAnswers(t) {
			if a.Code != code || a.Status == http.StatusAccepted { // an answer within one to a batch of requests
				continue
			}
			found = true
			for auth, do := range map[string]string{"shared_key": want.key, "sas": want.sas} {
				name := fmt.Sprint(a.Status, a.Code, a.Method, auth)
				c, requests := realAccount(t, a.send)
				c.Auth, c.Key, c.SAS = auth, "a2V5", "sv=2024-11-04&sig=secret"
				c.Retry.MaxRetries = retried - 1
				s, err := New(c)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				n, err := s.ReadAt(t.Context(), "meta/segments.json", make([]byte, 10), 0)
				if code == "InvalidRange" {
					if n != 0 || err != nil {
						t.Errorf("%s: %d bytes, %v", name, n, err)
					}
					continue
				}
				if err == nil || want.is != nil && !errors.Is(err, want.is) || requests() != want.requests {
					t.Fatalf("%s: %v after %d requests", name, err, requests())
				}
				text := err.Error()
				if !strings.Contains(text, want.text) || !strings.Contains(text, do) || strings.Contains(text, "secret") {
					t.Errorf("%s: %s", name, text)
				}
				if took := time.Since(began); took > 20*time.Second {
					t.Errorf("%s: took %s", name, took)
				}
			}
		}
		if !found {
			t.Errorf("no answer is recorded with %s", code)
		}
	}
}

// The real answer to a read where the feed is disabled, of 2026.
func TestFeedDisabled(t *testing.T) {
	body, err := os.ReadFile("testdata/errors/2026-03-12-404-feed-disabled.xml")
	if err != nil {
		t.Fatal(err)
	}
	c, _ := realAccount(t, func(w http.ResponseWriter) {
		w.Header().Set("x-ms-error-code", "ContainerNotFound")
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write(body)
	})
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, delimiter := range []string{"", "/"} {
		for _, err := range s.List(t.Context(), "idx/", delimiter) {
			if !errors.Is(err, source.ErrNoFeed) || !strings.Contains(err.Error(), "--enable-change-feed true") {
				t.Error(err)
			}
		}
	}
}
