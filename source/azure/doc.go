// Package azure is a source.Store over Azure Blob Storage, or Azurite.
package azure
