package azure

import (
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
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
			return nil, errors.New("client_secret needs tenant, client id and client secret")
		}
		cred, err = azidentity.NewClientSecretCredential(c.Tenant, c.ClientID, c.ClientSecret,
			&azidentity.ClientSecretCredentialOptions{ClientOptions: o, DisableInstanceDiscovery: other})
	default:
		return nil, fmt.Errorf("unknown way to authenticate %q", c.Auth)
	}
	if err != nil {
		return nil, fmt.Errorf("finding Azure credentials: %w", err)
	}
	return cred, nil
}
