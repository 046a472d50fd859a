// Package config holds the settings of the bridge: one struct, read from the environment and a file, and checked as a
// whole. The struct is also the table of which the help, docs/configuration.md and the masking of secrets are made.
//
// The package knows none of its users. They check what only they can parse; Config.Problem makes their error,
// which names the setting. No other package reads variables with the prefix.
package config
