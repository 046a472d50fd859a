package envelope_test

import (
	"fmt"
	"log"

	"blobfeed/envelope"
	"blobfeed/source"
	"blobfeed/source/ocf"
)

// An event of the feed becomes a record.
func Example() {
	o := envelope.Defaults(envelope.JSON, envelope.Wrapped)
	o.Topic, o.Columns = "blob-changes", []string{"event_type", "content_length"}
	encoder, err := envelope.NewEncoder(o)
	if err != nil {
		log.Fatal(err)
	}
	event := ocf.Event{ // as source.ShardReader returns it
		EventType: "BlobCreated", EventTime: "2026-01-31T12:00:00.0000000Z", ID: "1",
		Subject:       "/blobServices/default/containers/photos/blobs/a b.jpg",
		ContentLength: 5, HasContentLength: true, Sequencer: "2a",
	}
	var record envelope.Record
	_, emit, err := encoder.Append(nil, &record, &event, source.Position{})
	if err != nil || !emit {
		log.Fatal(emit, err)
	}
	fmt.Printf("%s\n%s\n", record.Key, record.Value)
	marker := encoder.Resolved(record.Updated)
	fmt.Printf("%s\n", marker.Value)
	// Output:
	// ["photos/a b.jpg"]
	// {"after": {"content_length": 5, "event_type": "BlobCreated", "path": "photos/a b.jpg"}, "key": ["photos/a b.jpg"], "updated": "1769860800000000000.0000000042"}
	// {"resolved":"1769860800000000000.0000000042"}
}
