package judge

import (
	"errors"

	"blobfeed/internal/config"
	"blobfeed/internal/setup"
)

// Use fills in the settings that the topics were written with.
func (o *Options) Use(c *config.Config) (err error) {
	c.RegistryAutoRegister = false // a reader writes nothing
	if o.ReadFeed || o.ReadAccount {
		o.Options, err = setup.Options(c, setup.Observe{})
	} else {
		o.Options, err = setup.WithoutFeed(c)
	}
	if err != nil {
		return err
	}
	o.Record, _ = setup.Record(c) // Options has reported what is wrong with it
	o.Account = c.SourceAccount
	o.ReplayName = func(topic string) string { return setup.ReplayName(c, topic) }
	if !c.Registry() {
		return nil
	}
	if len(c.RegistryURL) == 0 {
		return errors.New("BRIDGE_REGISTRY_URL: required for Avro: " +
			"set it to the registry that the topic was written with")
	}
	registry, err := setup.Registry(c, setup.Observe{})
	if err != nil {
		return err
	}
	o.Schema = registry.Schema
	return nil
}
