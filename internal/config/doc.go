// Package config holds the settings of the bridge: one struct, read from the environment and a file, and checked as a
// whole. The struct is also the table of which the help, docs/configuration.md and the masking of secrets are made.
//
// The package knows none of its users: they check what only they can parse, and name a setting in the problem by
// Config.Problem. It is the only one that spells the prefix of the variables.
package config
