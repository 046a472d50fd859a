package verify_test

import (
	"fmt"

	"blobfeed/verify"
)

// Records of a topic are shown to validators in the order of their offsets. Here the third one breaks two promises.
func Example() {
	record := func(offset int64, id, updated string) verify.Record {
		return verify.Record{Topic: "t", Offset: offset, Key: []byte(`["c/a"]`), Value: []byte("{}"),
			Headers: []verify.Header{{Key: "ce_id", Value: []byte(id)}, {Key: "updated", Value: []byte(updated)},
				{Key: "position", Value: []byte("2026/01/31/1200/00/0/2434/0")}}}
	}
	marker := verify.Record{Topic: "t", Offset: 1, Value: []byte(`{"resolved":"200.0000000000"}`)}
	all := verify.All(verify.NewUnique(), verify.NewResolved(1))
	for _, r := range []verify.Record{record(0, "1", "150.0000000001"), marker, record(2, "1", "150.0000000001")} {
		all.Note(r)
	}
	for _, f := range all.Failures() {
		fmt.Println(f)
	}
	// Output:
	// t, partition 0, offset 2: key ["c/a"]: unique: event 1 is repeated; first on partition 0 at offset 0
	// t, partition 0, offset 2: key ["c/a"]: resolved: updated 150.0000000001 comes after the marker 200.0000000000
}
