// Package dir is a source.Store over a local directory that is laid out like the container.
package dir
