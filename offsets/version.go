package offsets

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// Version is the latest version of documents. This package reads it and those before it. A field that old readers may
// ignore needs no new version; one that changes what the others mean does.
//
// Version 2 has moves in two phases: a bridge of version 1 would name a segment while a frontier is moving.
//
// Version 3 has scans: a bridge of version 2 would deliver while rows are written. Documents without a scan are still
// written as version 2, so that the bridge before can follow.
const (
	Version        = 3
	versionOfScans = 3
	versionOfMoves = 2
)

// versionOf returns the version in which a document is written.
func versionOf(scans bool) int {
	if scans {
		return versionOfScans
	}
	return versionOfMoves
}

// documents is how this package reads: upgrades lead from every version before to this one.
var documents = codec{version: Version, upgrades: map[int]upgrade{
	1: func(string, map[string]json.RawMessage) error { return nil }, // the new fields are zero: nothing moves
	2: func(string, map[string]json.RawMessage) error { return nil }, // nor is there a scan
}}

// upgrade turns the fields of a document of one version into those of the next.
type upgrade func(key string, fields map[string]json.RawMessage) error

// codec reads documents up to a version.
type codec struct {
	version  int
	upgrades map[int]upgrade // by the version that they start from
}

// VersionError says that a document was written by a newer bridge.
type VersionError struct {
	Key        string
	Have, Want int
}

func (e *VersionError) Error() string {
	return "the " + e.Key + " in the offsets topic has version " + strconv.Itoa(e.Have) + ", this bridge reads up to " +
		strconv.Itoa(e.Want) + "; run the newer bridge that wrote it"
}

// decode fills doc from value.
func (c codec) decode(key string, value []byte, doc any) error {
	value, err := c.upgrade(key, value)
	if err == nil {
		err = json.Unmarshal(value, doc)
	}
	var newer *VersionError
	if err != nil && !errors.As(err, &newer) { // which names the key itself
		return fmt.Errorf("reading the %s in the offsets topic: %w", key, err)
	}
	return err
}

// upgrade returns the document as this version would have written it.
func (c codec) upgrade(key string, value []byte) ([]byte, error) {
	var v struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, err
	}
	if v.Version < 1 || v.Version > c.version {
		return nil, &VersionError{Key: key, Have: v.Version, Want: c.version}
	}
	if v.Version == c.version {
		return value, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(value, &fields); err != nil {
		return nil, err
	}
	for n := v.Version; n < c.version; n++ {
		if err := c.upgrades[n](key, fields); err != nil {
			return nil, fmt.Errorf("version %d: %w", n, err)
		}
	}
	return json.Marshal(fields)
}
