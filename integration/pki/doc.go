// Package pki makes certificates for tests: an authority, and what it signs, as PEM files. Nothing of it is kept.
package pki
