package azure

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"blobfeed/internal/plain"
)

// Container is where the service keeps the feed.
const Container = "$blobchangefeed"

// Config says where the feed is and how to authenticate.
type Config struct {
	// Endpoint is the account's blob service: https://<account>.blob.core.windows.net, http://<host>:<port>/<account>.
	// The container's name may follow. Not needed with a connection string.
	Endpoint string
	Account  string // for shared_key, where the endpoint does not tell
	Auth     string // one of Auths

	Key, SAS, ConnectionString     string // for the ways of these names
	Tenant, ClientID, ClientSecret string // for those of Entra ID; "": as the environment says
	TokenFile                      string // for workload_identity; "": as the environment says
	// https://login.microsoftonline.com or that of another cloud; "": as the environment says
	Authority string

	Transport policy.Transporter // nil: one that follows no redirect
	Retry     policy.RetryOptions
	// Timeout of one request. Bytes already received are kept, and the request is resumed. 0 is a minute.
	Timeout time.Duration
	// Observe is called after every request, also after each retry: op is list or read, status is 0 without an answer,
	// and err says then why there is none.
	Observe func(op string, status int, took time.Duration, received int64, err error)
	// Renew reads the settings again when the service rejects the credentials, which may have been replaced since. It
	// may be nil.
	Renew func() (Config, error)

	// Named returns what users call a field of this struct, for errors. It may be nil.
	Named func(field string) string

	answered *string // if not nil, gets the version that the account answers with
}

// Auths are the ways to authenticate.
var Auths = []string{"default", "workload_identity", "managed_identity", "client_secret", "shared_key", "sas",
	"connection_string", "anonymous"}

// named returns what users call a field.
func (c *Config) named(field string) string {
	if c.Named == nil {
		return field
	}
	return c.Named(field)
}

// New returns the store. It makes no request.
func New(c Config) (*Store, error) {
	cl, account, err := c.client(Container)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(cl.URL())
	if err != nil {
		return nil, fmt.Errorf("parsing the container's URL: %w", c.explain(err))
	}
	if account == "" {
		_, account, _ = endpoint(u.Scheme + "://" + u.Host + u.Path)
	}
	s := &Store{id: strings.ToLower(u.Host) + strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/"+Container),
		account: account, config: c}
	s.client.Store(cl)
	return s, nil
}

func (c *Config) transport() policy.Transporter {
	if c.Transport != nil {
		return c.Transport
	}
	return defaultClient()
}

// client returns a client of a container, and the account's name as far as it is known.
func (c *Config) client(name string) (cl *container.Client, account string, err error) {
	s, account, err := c.service(c.transport())
	if err != nil {
		return nil, "", err
	}
	return s.NewContainerClient(name), account, nil
}

// service returns a client of the account, and the account's name as far as it is known.
func (c *Config) service(t policy.Transporter) (cl *service.Client, account string, err error) {
	options := &service.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: t, Retry: c.Retry}}
	if options.Retry.MaxRetries == 0 {
		options.Retry = policy.RetryOptions{MaxRetries: 4, RetryDelay: 500 * time.Millisecond,
			MaxRetryDelay: 20 * time.Second}
	}
	if c.Observe != nil {
		options.PerRetryPolicies = append(options.PerRetryPolicies, &observer{c})
	}
	options.PerCallPolicies = append(options.PerCallPolicies, versioner{c.answered})
	options.PerRetryPolicies = append(options.PerRetryPolicies, &receiver{})
	options.Retry.TryTimeout = cmp.Or(c.Timeout, time.Minute)
	if c.Auth == "connection_string" {
		if c.ConnectionString == "" {
			return nil, "", &SettingError{"ConnectionString", "it is empty: set it"}
		}
		cl, err := service.NewClientFromConnectionString(c.ConnectionString, options)
		if err != nil {
			// The cause may show it.
			return nil, "", &SettingError{"ConnectionString", "it cannot be parsed: copy it whole, " +
				"from the access keys of the storage account (AccountName=…;AccountKey=…;…)"}
		}
		if _, _, err := endpoint(redact(cl.URL())); err != nil {
			return nil, "", &SettingError{"ConnectionString", "BlobEndpoint: " + err.Error()}
		}
		return cl, cmp.Or(c.Account, plain.ConnectionPart(c.ConnectionString, "AccountName")), private(cl.URL())
	}
	where, account, err := endpoint(c.Endpoint)
	if err != nil {
		return nil, "", err
	}
	account = cmp.Or(c.Account, account)
	where = strings.TrimSuffix(where, "/"+Container)
	switch c.Auth {
	case "anonymous":
		cl, err = service.NewClientWithNoCredential(where, options)
	case "sas":
		if c.SAS == "" {
			return nil, "", &SettingError{"SAS", "it is empty: set it"}
		}
		cl, err = service.NewClientWithNoCredential(where+"?"+strings.TrimPrefix(strings.TrimSpace(c.SAS), "?"),
			options)
	case "shared_key":
		if account == "" {
			return nil, "", &SettingError{"Account", "the URL does not name the account: set it"}
		}
		cred, kerr := service.NewSharedKeyCredential(account, c.Key)
		if kerr != nil || c.Key == "" {
			return nil, "", &SettingError{"Key", "it is empty or not base64: copy a key of the account whole"}
		}
		cl, err = service.NewClientWithSharedKeyCredential(where, cred, options)
	default:
		if strings.HasPrefix(where, "http://") {
			return nil, "", &SettingError{"Auth", fmt.Sprintf("tokens of Entra ID are sent over https only: use https "+
				"in %s; or, for Azurite, set %s=shared_key and %s",
				c.named("Endpoint"), c.named("Auth"), c.named("Key"))}
		}
		cred, cerr := c.TokenCredential()
		if cerr != nil {
			return nil, "", &SettingError{"Auth", cerr.Error()}
		}
		cl, err = service.NewClient(where, cred, options)
	}
	if err != nil {
		return nil, "", fmt.Errorf("creating the blob client: %w", c.explain(err))
	}
	return cl, account, private(cl.URL())
}

// private rejects a signature in a URL that would send it unencrypted.
func private(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return errors.New("the container's URL can't be parsed") // it may hold the signature
	}
	ip := net.ParseIP(u.Hostname())
	if u.Scheme != "http" || u.RawQuery == "" || u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("the shared access signature would be sent to %s unencrypted: use https", u.Hostname())
}

// endpoint returns the container's URL and the account in it.
func endpoint(text string) (where, account string, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		// without the text itself, which may hold a secret
		return "", "", errors.New("want https://<account>.blob.core.windows.net" + meant(text))
	}
	if u.RawQuery != "" || u.User != nil {
		return "", "", errors.New("the URL has a query or a user: give a shared access signature apart from it")
	}
	// The feed can't be read through the Data Lake endpoint of the same account.
	u.Host = strings.Replace(u.Host, ".dfs.", ".blob.", 1)
	path := strings.Trim(strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/"+Container), "/")
	account = plain.AccountName(u.Hostname(), path)
	below := path
	u.Path, u.RawPath = "", ""
	if path != "" && !strings.Contains(u.Hostname(), ".blob.") { // http://host:port/account
		path, below, _ = strings.Cut(path, "/")
		u = u.JoinPath(path)
	}
	if below != "" {
		return "", "", fmt.Errorf("it names %.100q in the account: want the account alone, %s (the feed is in its "+
			"container %s)", below, u, Container)
	}
	return u.JoinPath(Container).String(), account, nil
}

// meant returns what a text without a scheme was probably meant to be.
func meant(text string) string {
	switch {
	case strings.HasPrefix(text, "/"):
		return ", or file://" + text + " for a directory"
	case strings.HasPrefix(text, "."):
		return ", or file:///<absolute path> for a directory"
	case accountName.MatchString(text):
		return "; did you mean https://" + text + ".blob.core.windows.net?"
	case accountHost.MatchString(text):
		return "; did you mean https://" + text + "?"
	}
	return "" // without the text, which may hold a secret
}

var (
	accountName = regexp.MustCompile(`^[a-z0-9]{3,24}$`)
	accountHost = regexp.MustCompile(`^[a-z0-9]{3,24}\.(blob|dfs)\.[a-z.]+$`)
)

// redact keeps a query, which may be a signature, out of errors.
func redact(text string) string {
	text, _, _ = strings.Cut(text, "?")
	return text
}
