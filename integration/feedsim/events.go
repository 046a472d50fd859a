package feedsim

import (
	"fmt"
	"strings"
	"time"
)

var containers = []string{"photos", "backups", "$web"}

// odd are names that break readers which decode or split them.
var odd = []string{"a b & é.jpg", "100%25/x#y+z", "x/blobs/y", "/leading", `quo"te\back`, "😀/emoji.png", "trailing/"}

func blobName(i int) (container, blob string) {
	container = containers[i%len(containers)]
	if i%50 == 7 {
		return container, fmt.Sprintf("%s-%d", odd[i/50%len(odd)], i)
	}
	return container, fmt.Sprintf("dir%03d/file-%06d.bin", i%128, i)
}

// event makes the next event of the open segment.
func (f *Feed) event() event {
	f.total++
	blob := f.rng.IntN(f.spec.Blobs)
	if f.rng.Float64() < f.spec.HotShare {
		blob = f.rng.IntN(min(10, f.spec.Blobs))
	}
	container, name := blobName(blob)
	// Times rise per blob and are a little apart between blobs, so that a chunk's are not sorted.
	step := (f.spec.Interval - 2*time.Second) / time.Duration(f.spec.EventsPerSegment)
	at := min(time.Duration(f.inSeg)*step, f.spec.Interval-2*time.Second) + time.Duration(f.inSeg)*100*time.Nanosecond + time.Duration(blob%97)*time.Millisecond
	f.inSeg++

	e := event{topic: "/subscriptions/00000000-1111-2222-3333-444444444444/resourceGroups/sim/providers/Microsoft.Storage/storageAccounts/" + f.spec.Account}
	e.Key = container + "/" + name
	e.subject = "/blobServices/default/containers/" + container + "/blobs/" + name
	e.Segment = f.begin.Format(pathLayout)
	e.EventTime = f.begin.Add(at).Format("2006-01-02T15:04:05.0000000Z")
	e.ID = fmt.Sprintf("%08x-%04x-4000-8000-%012x", uint32(f.spec.Seed), f.opened, f.total)
	e.Sequencer = fmt.Sprintf("%032X%016x", 0x2AB, f.total)
	e.etag = fmt.Sprintf("0x%X", 0x8DAD189BD5C84F6+f.total)
	e.length = f.rng.Int64N(1 << 24)
	e.url = "https://" + f.spec.Account + ".blob.core.windows.net/" + strings.ReplaceAll(e.Key, " ", "%20")
	e.EventType, e.API, e.State = "BlobCreated", "PutBlob", true
	if !f.created[blob] {
		f.created[blob] = true
		return e
	}
	switch r := f.rng.IntN(100); {
	case r < 15:
		e.EventType, e.API = "BlobDeleted", "DeleteBlob"
		delete(f.created, blob)
	case r < 25:
		e.EventType, e.API = "BlobPropertiesUpdated", "SetBlobProperties"
	case r < 28:
		e.EventType, e.API, e.State = "BlobSnapshotCreated", "SnapshotBlob", false
		e.Snapshot = e.EventTime
	}
	// Version 1 knows fewer types. It has an enum of its own, so what it lacks can't be written.
	for _, v := range f.versions {
		if !v.has("EventTypeEnum", e.EventType) || !v.has("ApiEnum", e.API) {
			e.EventType, e.API, e.Snapshot, e.State = "BlobCreated", "PutBlob", "", true
		}
	}
	return e
}
