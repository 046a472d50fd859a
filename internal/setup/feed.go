package setup

import (
	"errors"
	"path/filepath"
	"strings"
	"time"

	"blobfeed/internal/config"
	"blobfeed/source"
	"blobfeed/source/azure"
	"blobfeed/source/dir"
)

// Observe has functions that are called after every request. A function may be nil.
type Observe struct {
	Storage  func(op string, status int, took time.Duration, received int64)
	Registry func(op string, status int, took time.Duration, known int)
}

// Feed returns the feed that the settings name, its identity, and the storage account if the settings name it.
func Feed(c *config.Config, observe Observe) (feed *source.Feed, id, account string, err error) {
	store, id, account, err := openStore(c, observe)
	if err != nil {
		var setting *azure.SettingError
		if errors.As(err, &setting) {
			return nil, "", "", c.Problem(setting.Setting, "%s", setting.Problem)
		}
		return nil, "", "", c.Problem("SOURCE_URL", "%w", err)
	}
	memory := memoryLimit()
	feed = source.New(store, source.Options{ReadSize: readSize(c, memory), Limits: blockLimits(memory)})
	return feed, id, account, nil
}

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
	return s, s.ID(), s.Account(), nil
}

// Azure returns the connection to the storage account that the settings name.
func Azure(c *config.Config) azure.Config {
	identity := c.Identity()
	return azure.Config{
		Endpoint: c.SourceURL, Auth: c.SourceAuth, Account: c.SourceAccount,
		Key: string(c.SourceKey), SAS: string(c.SourceSAS),
		ConnectionString: string(c.SourceConnectionString), ClientSecret: string(c.SourceClientSecret),
		Tenant: identity.Tenant, ClientID: identity.ClientID, TokenFile: identity.TokenFile,
		Authority: identity.Authority, Timeout: c.StorageTimeout(),
	}
}
