package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"blobfeed/internal/config"
	"blobfeed/source"
	"blobfeed/source/azure"
	"blobfeed/source/dir"
)

// openFeed returns the feed that the settings name, its identity, and the storage account if the settings tell it.
func openFeed(c *config.Config) (feed *source.Feed, id, account string, err error) {
	return observedFeed(c, observe{})
}

// observe is told of every request to the storage service, and to the schema registry. What is nil hears nothing.
type observe struct {
	storage  func(op string, status int, took time.Duration, received int64)
	registry asked
}

func observedFeed(c *config.Config, observe observe) (feed *source.Feed, id, account string, err error) {
	store, id, account, err := openStore(c, observe)
	if err != nil {
		return nil, "", "", fmt.Errorf("%s_SOURCE_URL: %w", config.Prefix, err)
	}
	memory := memoryLimit()
	feed = source.New(store, source.Options{ReadSize: readSize(c, memory), Limits: blockLimits(memory)})
	return feed, id, account, nil
}

func openStore(c *config.Config, observe observe) (store source.Store, id, account string, err error) {
	if path, ok := strings.CutPrefix(c.SourceURL, "file://"); ok {
		if !filepath.IsAbs(path) {
			return nil, "", "", errors.New("want file:///<absolute path>")
		}
		d, err := dir.New(path)
		return d, "file://" + filepath.Clean(path), c.SourceAccount, err
	}
	conf := azureConfig(c)
	conf.Observe = observe.storage
	conf.Renew = func() (azure.Config, error) {
		fresh, err := c.Reread()
		if err != nil {
			return azure.Config{}, err
		}
		renewed := azureConfig(fresh)
		renewed.Observe = observe.storage
		return renewed, nil
	}
	s, err := azure.New(conf)
	if err != nil {
		return nil, "", "", err
	}
	return s, s.ID(), s.Account(), nil
}

func azureConfig(c *config.Config) azure.Config {
	identity := c.Identity()
	return azure.Config{
		Endpoint: c.SourceURL, Auth: c.SourceAuth, Account: c.SourceAccount, Key: string(c.SourceKey), SAS: string(c.SourceSAS),
		ConnectionString: string(c.SourceConnectionString), ClientSecret: string(c.SourceClientSecret),
		Tenant: identity.Tenant, ClientID: identity.ClientID, TokenFile: identity.TokenFile,
		Authority: identity.Authority, Timeout: c.StorageTimeout(),
	}
}
