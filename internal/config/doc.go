// Package config holds the settings of the bridge: one struct, read from the environment, checked as a whole. The
// reference (--help and docs/configuration.md) is made from the same struct.
package config
