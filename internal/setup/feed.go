package setup

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"blobfeed/internal/config"
	"blobfeed/source"
	"blobfeed/source/azure"
	"blobfeed/source/dir"
	"blobfeed/source/inventory"
)

// Observe has functions that are called after every request. A function may be nil.
type Observe struct {
	Storage  func(op string, status int, took time.Duration, received int64, err error)
	Registry func(op string, status int, took time.Duration, known int)
}

// Source is the feed that the settings name.
type Source struct {
	Feed      *source.Feed
	ID        string          // identity of the account or directory
	Account   string          // "" if the settings do not name it
	Inventory inventory.Store // of the feed's account; nil if there is none to list
	NoScan    error           // why there is none
	URL       string          // of the account, with a slash at its end
}

// OpenSource opens the feed that the settings name. It makes no request.
func OpenSource(c *config.Config, observe Observe) (*Source, error) {
	store, id, account, err := openStore(c, observe)
	if setting, is := errors.AsType[*azure.SettingError](err); is {
		return nil, c.Problem(sourceSettings[setting.Field], "%s", setting.Problem)
	}
	if err != nil {
		return nil, c.Problem("SOURCE_URL", "%w", err)
	}
	memory := memoryLimit()
	s := &Source{ID: id, Account: account}
	blobs, isAzure := store.(*azure.Store)
	s.Feed = source.New(store,
		source.Options{ReadSize: readSize(c, memory), Limits: blockLimits(memory), Copy: !isAzure || blobs.Emulated()})
	if isAzure {
		listed, err := blobs.Inventory()
		if err == nil && account == "" { // rows of a scan have no event that names it
			err = errUnnamed
		}
		if err != nil {
			s.NoScan = err
			return s, nil
		}
		s.Inventory, s.URL = listed, listed.URL()
	} else {
		s.NoScan = errNoAccount
	}
	return s, nil
}

var (
	errNoAccount = errors.New("a directory has no account to list: set BRIDGE_SOURCE_URL to the URL of the account")
	errUnnamed   = errors.New("BRIDGE_SOURCE_URL does not name the account: set BRIDGE_SOURCE_ACCOUNT")
)

func openStore(c *config.Config, observe Observe) (store source.Store, id, account string, err error) {
	if path, ok := strings.CutPrefix(c.SourceURL, "file://"); ok {
		if !filepath.IsAbs(path) {
			return nil, "", "", errors.New("want file:///<absolute path>")
		}
		d, err := dir.New(path)
		return d, "file://" + filepath.Clean(path), c.SourceAccount, err
	}
	conf := Azure(c)
	conf.Observe = observe.Storage
	conf.Renew = func() (azure.Config, error) {
		fresh, err := c.Reread()
		if err != nil {
			return azure.Config{}, err
		}
		renewed := Azure(fresh)
		renewed.Observe = observe.Storage
		return renewed, nil
	}
	s, err := azure.New(conf)
	if err != nil {
		return nil, "", "", err
	}
	named := conf
	named.Auth = "anonymous"
	if other, err := azure.New(named); err == nil && c.SourceAuth == "connection_string" && other.ID() != s.ID() {
		return nil, "", "", fmt.Errorf("it names %s, but BRIDGE_SOURCE_CONNECTION_STRING %s, which is read: "+
			"leave one of them out, or correct it", other.ID(), s.ID())
	}
	return s, s.ID(), s.Account(), nil
}

// sourceSettings are the settings of the fields of azure.Config.
var sourceSettings = map[string]string{
	"Endpoint": "SOURCE_URL", "Auth": "SOURCE_AUTH", "Account": "SOURCE_ACCOUNT", "Key": "SOURCE_KEY",
	"SAS": "SOURCE_SAS", "ConnectionString": "SOURCE_CONNECTION_STRING", "ClientSecret": "SOURCE_CLIENT_SECRET",
}

// named returns the variables of fields.
func named(settings map[string]string) func(field string) string {
	return func(field string) string { return config.Prefix + "_" + settings[field] }
}

// Azure returns the connection to the storage account that the settings name.
func Azure(c *config.Config) azure.Config {
	identity, timeout := c.Identity(), c.StorageTimeout()
	if c.Tuning.StorageRetries > 0 { // somebody waits
		timeout = c.NetworkTimeout
	}
	return azure.Config{
		Endpoint: c.SourceURL, Auth: c.SourceAuth, Account: c.SourceAccount,
		Key: string(c.SourceKey), SAS: string(c.SourceSAS),
		ConnectionString: string(c.SourceConnectionString), ClientSecret: string(c.SourceClientSecret),
		Tenant: identity.Tenant, ClientID: identity.ClientID, TokenFile: identity.TokenFile,
		Authority: identity.Authority, Timeout: timeout, Named: named(sourceSettings),
		Retry: policy.RetryOptions{MaxRetries: c.Tuning.StorageRetries, RetryDelay: 500 * time.Millisecond},
	}
}
