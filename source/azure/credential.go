package azure

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"blobfeed/internal/plain"
)

// TokenCredential returns a source of Entra ID tokens that renews them before they expire.
func (c *Config) TokenCredential() (cred azcore.TokenCredential, err error) {
	o := azcore.ClientOptions{Transport: c.transport()}
	other := false
	if c.Authority != "" {
		o.Cloud = cloud.Configuration{ActiveDirectoryAuthorityHost: c.Authority}
		other = true // the public cloud does not know it
	}
	switch c.Auth {
	case "default", "":
		cred, err = azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{ClientOptions: o,
			TenantID: c.Tenant, DisableInstanceDiscovery: other})
	case "workload_identity":
		cred, err = azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{
			ClientOptions: o, ClientID: c.ClientID, TenantID: c.Tenant, TokenFilePath: c.TokenFile,
			DisableInstanceDiscovery: other})
	case "managed_identity":
		m := azidentity.ManagedIdentityCredentialOptions{ClientOptions: o}
		if c.ClientID != "" { // user assigned
			m.ID = azidentity.ClientID(c.ClientID)
		}
		cred, err = azidentity.NewManagedIdentityCredential(&m)
	case "client_secret":
		if c.Tenant == "" || c.ClientID == "" || c.ClientSecret == "" {
			return nil, plain.WithRemedy(errors.New("client_secret needs a tenant, a client and a secret"),
				c.tokenRemedy(""))
		}
		cred, err = azidentity.NewClientSecretCredential(c.Tenant, c.ClientID, c.ClientSecret,
			&azidentity.ClientSecretCredentialOptions{ClientOptions: o, DisableInstanceDiscovery: other})
	default:
		return nil, fmt.Errorf("unknown way to authenticate %q", c.Auth)
	}
	if err != nil {
		return nil, plain.WithRemedy(&tokenError{brief(err.Error()), err}, c.tokenRemedy(""))
	}
	return &explainedCredential{cred, c}, nil
}

// explainedCredential shortens the errors of the SDK's credentials to one line, and says what to do.
type explainedCredential struct {
	azcore.TokenCredential
	config *Config
}

// GetToken implements azcore.TokenCredential.
func (c *explainedCredential) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := c.TokenCredential.GetToken(ctx, o)
	if err == nil || ctx.Err() != nil {
		return token, err
	}
	return token, plain.WithRemedy(&tokenError{brief(err.Error()), err}, c.config.tokenRemedy(err.Error()))
}

// tokenError is a token that could not be had.
type tokenError struct {
	text string
	err  error
}

func (e *tokenError) Error() string { return "getting a token of Entra ID: " + e.text }

func (e *tokenError) Unwrap() error { return e.err }

// NonRetriable implements errorinfo.NonRetriable of the SDK: the source of credentials has retried itself.
func (*tokenError) NonRetriable() {}

var (
	refusal = regexp.MustCompile(`AADSTS\d+: [^"\\\r\n]*`)             // of Entra ID, without the trace
	attempt = regexp.MustCompile(`(?m)^\t(\w+Credential[ :].*)$`)      // a line of the chain
	reply   = regexp.MustCompile(`(?m)^\s*RESPONSE \d+: (\d+ [\w ]+)`) // of the machine's own service
	advert  = regexp.MustCompile(`\.? *(?:To mitigate|Check pod configuration|See https|To troubleshoot).*`)
)

// brief returns a line of the SDK's page-long text.
func brief(text string) string {
	if found := refusal.FindString(text); found != "" {
		found, _, _ = strings.Cut(found, " Trace ID")
		return plain.Line(strings.TrimRight(found, ". "))
	}
	var parts []string
	lines := attempt.FindAllStringSubmatchIndex(text, -1)
	for i, at := range lines {
		end := len(text)
		if i+1 < len(lines) {
			end = lines[i+1][0]
		}
		parts = append(parts, short(text[at[2]:end]))
	}
	if len(parts) == 0 {
		return short(text)
	}
	return strings.Join(parts, "; ")
}

// short returns the first line of a part, and the status if it reports an answer.
func short(part string) string {
	line, _, _ := strings.Cut(part, "\n")
	line = strings.TrimRight(advert.ReplaceAllString(line, ""), ". \r")
	if status := reply.FindStringSubmatch(part); status != nil {
		line += ": " + strings.TrimSpace(status[1])
	}
	return plain.Line(line)
}

// refusals are the commonest of Entra ID, by the number in their text. SECRET stands for the name of the setting.
var refusals = []struct{ number, do string }{
	{"AADSTS7000215", "set SECRET to the value of the application's secret, not to its id"},
	{"AADSTS7000222", "the secret has expired: create another one for the application, and set SECRET"},
	{"AADSTS700016", "set AZURE_CLIENT_ID to an application of the tenant AZURE_TENANT_ID"},
	{"AADSTS90002", "set AZURE_TENANT_ID to the tenant of the application"},
	{"AADSTS900023", "set AZURE_TENANT_ID to the tenant of the application"},
	{"AADSTS70021", "add a federated credential for this service account to the identity AZURE_CLIENT_ID"},
	{"AADSTS700213", "add a federated credential for this service account to the identity AZURE_CLIENT_ID"},
}

// tokenRemedy says what to do about a token that could not be had.
func (c *Config) tokenRemedy(text string) string {
	way, secret := c.named("Auth"), c.named("ClientSecret")
	for _, r := range refusals {
		if strings.Contains(text, r.number+":") {
			return strings.ReplaceAll(r.do, "SECRET", secret)
		}
	}
	switch c.Auth {
	case "workload_identity":
		return "set AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_FEDERATED_TOKEN_FILE, as the webhook of Azure " +
			"Workload Identity does for a pod with the label azure.workload.identity/use"
	case "managed_identity":
		return "give this machine a managed identity (AZURE_CLIENT_ID chooses a user-assigned one), or set " + way +
			" to another way to authenticate"
	case "client_secret":
		return "set AZURE_TENANT_ID, AZURE_CLIENT_ID and " + secret
	}
	return "set " + way + " to the way that you mean, such as managed_identity or client_secret; on a laptop, " +
		"run az login"
}
