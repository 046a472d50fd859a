package azure

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"blobfeed/internal/plain"
)

// A rejected request says what to do next, by what it was signed with and by why it was rejected.
func TestRejectionSaysWhatToDo(t *testing.T) {
	for _, tc := range []struct {
		auth   string
		status int
		code   string
		do     string
	}{
		{"shared_key", 403, "AuthenticationFailed", "set Key to a key of this account"},
		{"shared_key", 403, "AuthorizationFailure",
			"check the account and its key in Key; if they are right"},
		{"shared_key", 403, "KeyBasedAuthenticationNotPermitted", "the account rejects keys"},
		{"connection_string", 403, "AuthenticationFailed", "set ConnectionString to a key"},
		{"sas", 403, "AuthenticationFailed", "set SAS to a signature that has not expired"},
		{"sas", 403, "AuthorizationPermissionMismatch", "set SAS to a signature that has not expired"},
		{"sas", 403, "AuthorizationFailure", "check SAS"},
		{"anonymous", 401, "NoAuthenticationInformation", "anonymous requests cannot read the feed"},
		{"anonymous", 409, "PublicAccessNotPermitted", "anonymous requests cannot read the feed"},
		{"anonymous", 404, "ResourceNotFound", "anonymous requests cannot read the feed"},
		{"default", 403, "AuthorizationPermissionMismatch", "give the identity the role Storage Blob Data Reader"},
		{"default", 403, "AuthorizationFailure", "allow this machine in the network rules"},
		{"default", 401, "InvalidAuthenticationInfo", "the token is of another tenant or cloud"},
		{"default", 503, "ServerBusy", ""},
		{"default", 404, "ResourceNotFound", "check the account and the path in Endpoint"},
		{"default", 400, "InvalidUri", "check the account and the path in Endpoint"},
	} {
		c := Config{Auth: tc.auth}
		err := c.explain(&azcore.ResponseError{StatusCode: tc.status, ErrorCode: tc.code})
		text, do := plain.SplitRemedy(err)
		if !strings.HasPrefix(do, tc.do) || tc.do == "" && do != "" || !strings.Contains(text, tc.code) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s, %d %s: %v", tc.auth, tc.status, tc.code, err)
		}
	}
}

// A signature that is not valid at this time is the reason, whatever the service calls it. It is never shown.
func TestRejectionOfAnOutdatedSignature(t *testing.T) {
	const past, future = "2020-05-01T00:00:00Z", "2120-05-01"
	for fields, want := range map[string]string{
		"se=" + past:                      "set SAS to a new signature: this one expired at " + past,
		"st=" + future + "&se=2121-01-01": "set SAS to another signature, or wait: this one is not valid before " + future,
		"se=2020-05-01T00:00Z":            "set SAS to a new signature",
		"st=" + past + "&se=" + future:    "check SAS",
		"si=policy":                       "check SAS",
	} {
		fields += "&sig=c2VjcmV0"
		for _, c := range []Config{{Auth: "sas", SAS: "?" + fields}, {Auth: "connection_string",
			ConnectionString: "BlobEndpoint=https://a.blob.core.windows.net;SharedAccessSignature=" + fields}} {
			err := c.explain(&azcore.ResponseError{StatusCode: 403, ErrorCode: "AuthorizationFailure"})
			_, do := plain.SplitRemedy(err)
			if do = strings.Replace(do, "ConnectionString", "SAS", 1); !strings.HasPrefix(do, want) ||
				strings.Contains(err.Error(), "c2VjcmV0") {
				t.Errorf("%s, %s: %v", c.Auth, fields, err)
			}
		}
	}
}

// chain is what the SDK says when no credential of the chain works.
const chain = "DefaultAzureCredential: failed to acquire a token.\nAttempted credentials:\n" +
	"\tEnvironmentCredential: missing environment variable AZURE_TENANT_ID\n" +
	"\tWorkloadIdentityCredential: no client ID specified. Check pod configuration or set ClientID in the options\n" +
	"\tManagedIdentityCredential authentication failed. \n" +
	"\t\tGET http://169.254.169.254/metadata/identity/oauth2/token\n\t\t" +
	"--------------------------------------------------------------------------------\n" +
	"\t\tRESPONSE 403: 403 Forbidden\n\t\tdenied\n\t\tTo troubleshoot, visit https://aka.ms/azsdk\n" +
	"\tAzureCLICredential: Azure CLI not found on path"

// refused is what the SDK says when Entra ID refuses a secret.
const refused = "ClientSecretCredential authentication failed. \nPOST https://login.microsoftonline.com/t/token\n" +
	"RESPONSE 401: 401 Unauthorized\n{\n  \"error_description\": \"AADSTS7000215: Invalid client secret provided. Ensure the secret being sent is the value. Trace ID: 1 Correlation ID: 2 Timestamp: 3\"\n}"

type noToken string

func (n noToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{}, errors.New(string(n))
}

// A failing chain of credentials is one line, with the next step.
func TestTokenErrorsAreOneLine(t *testing.T) {
	for _, tc := range []struct{ auth, sdk, text, do string }{
		{"default", chain, "EnvironmentCredential: missing environment variable AZURE_TENANT_ID; " +
			"WorkloadIdentityCredential: no client ID specified; " +
			"ManagedIdentityCredential authentication failed: 403 Forbidden; " +
			"AzureCLICredential: Azure CLI not found on path", "set Auth to the way that you mean"},
		{"client_secret", refused,
			"AADSTS7000215: Invalid client secret provided. Ensure the secret being sent is the value",
			"set ClientSecret to the value"},
	} {
		c := &explainedCredential{noToken(tc.sdk), &Config{Auth: tc.auth}}
		_, err := c.GetToken(t.Context(), policy.TokenRequestOptions{})
		text, do := plain.SplitRemedy(err)
		if text != "getting a token of Entra ID: "+tc.text || !strings.HasPrefix(do, tc.do) {
			t.Errorf("%s\n%s\n%s", tc.auth, text, do)
		}
		c.config.Named = strings.ToUpper
		_, err = c.GetToken(t.Context(), policy.TokenRequestOptions{})
		if _, do := plain.SplitRemedy(err); !strings.Contains(do, "AUTH") && !strings.Contains(do, "CLIENTSECRET") {
			t.Errorf("with names of our own: %v", err)
		}
	}
}

// The wrong field is named: the one to change, not the endpoint.
func TestWrongSettingIsNamed(t *testing.T) {
	for _, tc := range []struct {
		config        Config
		setting, says string
	}{
		{Config{Endpoint: "http://127.0.0.1:1/acct", Auth: "shared_key", Key: "not*base64"}, "Key", "base64"},
		{Config{Endpoint: "https://files.example.com", Auth: "shared_key", Key: "a2V5"}, "Account", "set it"},
		{Config{Endpoint: "http://127.0.0.1:1/acct", Auth: "default"}, "Auth", "Auth=shared_key"},
		{Config{Auth: "connection_string", ConnectionString: "abc"}, "ConnectionString", "copy it whole"},
		{Config{Endpoint: "https://acct.blob.core.windows.net", Auth: "workload_identity"}, "Auth",
			"set AZURE_CLIENT_ID"},
	} {
		var setting *SettingError
		if _, err := New(tc.config); !errors.As(err, &setting) || setting.Field != tc.setting ||
			!strings.Contains(setting.Problem, tc.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", tc.setting, err)
		}
	}
	for endpoint, says := range map[string]string{
		"/data/feed":                      "file:///data/feed",
		"./feed":                          "file:///<absolute path>",
		"myaccount":                       "did you mean https://myaccount.blob.core.windows.net?",
		"myaccount.blob.core.windows.net": "did you mean https://myaccount.blob.core.windows.net?",
		"https://acct.blob.core.windows.net/images": "want the account alone, https://acct.blob.core.windows.net",
	} {
		if _, err := New(Config{Endpoint: endpoint, Auth: "anonymous"}); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

type noAnswer struct{ err error }

func (n noAnswer) Do(r *http.Request) (*http.Response, error) {
	return nil, &url.Error{Op: r.Method, URL: r.URL.String(), Err: n.err}
}

// A name that the DNS does not know is probably a misspelt account.
func TestUnknownAccount(t *testing.T) {
	s, err := New(Config{Endpoint: "https://acct.blob.core.windows.net", Auth: "anonymous",
		Transport: noAnswer{&net.DNSError{Name: "acct.blob.core.windows.net", IsNotFound: true}},
		Retry:     policy.RetryOptions{MaxRetries: -1}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.ReadAt(t.Context(), "x", make([]byte, 1), 0)
	if err == nil || !strings.Contains(err.Error(), "check the account's name in Endpoint") {
		t.Errorf("%v", err)
	}
}
