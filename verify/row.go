package verify

import (
	"encoding/json"
	"errors"
)

// Row is what a record leaves of its key: nothing, or a blob.
type Row struct {
	Deleted bool
	ETag    string
	Length  int64
	Type    string // BlockBlob, …
}

// Values says in which form values are.
type Values struct {
	Bare bool // a deletion is a row with nothing but its key
	None bool // there are none: no bytes are not a deletion
}

// Row returns what a record leaves of its key, as far as its value says.
func (r *Record) Row(in Values) (row Row, err error) {
	if len(r.Value) == 0 {
		return Row{Deleted: r.Value == nil || !in.None}, nil
	}
	d := r.document()
	if d.unread {
		return row, errors.New("the value can't be read")
	}
	if d.blob == nil {
		return Row{Deleted: true}, nil
	}
	var columns struct {
		ETag   string `json:"etag"`
		Length int64  `json:"content_length"`
		Type   string `json:"blob_type"`
	}
	if err := json.Unmarshal(d.blob, &columns); err != nil {
		return row, err
	}
	row = Row{ETag: columns.ETag, Length: columns.Length, Type: columns.Type}
	if in.Bare {
		row.Deleted, err = onlyKey(d.blob)
	}
	return row, err
}

// onlyKey reports whether all columns of a row are null but the key, which is how the bare envelope has a deletion.
func onlyKey(row []byte) (bool, error) {
	var columns map[string]json.RawMessage
	if err := json.Unmarshal(row, &columns); err != nil {
		return false, err
	}
	for name, value := range columns {
		if string(value) != "null" && name != "__crdb__" && name != "path" {
			return false, nil
		}
	}
	return true, nil
}
