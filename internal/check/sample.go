package check

import (
	"blobfeed/bridge/pipeline"
	"blobfeed/envelope"
	"blobfeed/source"
)

// largest returns the size of the largest record of the feed's first events, as run would send it; 0: none is known.
// It needs no registry: any id of a schema has the same length.
func (b *Bridge) largest() (size int) {
	o := b.Record
	o.Topic = "sample"
	o.Register = func(envelope.Subject) (int, error) { return 1, nil }
	e, err := envelope.NewEncoder(o)
	if err != nil {
		return 0 // an error of the settings, or of the registry, which has a finding of its own
	}
	for i := range b.sample {
		ev := &b.sample[i]
		match, err := b.Options.Filter.Match(ev)
		if err != nil || !match || !b.Options.Events.Emits(envelope.Classify(ev)) {
			continue
		}
		var r envelope.Record
		if _, emit, err := e.Append(nil, &r, ev, source.Position{}); err == nil && emit {
			size = max(size, pipeline.Size(&r))
		}
	}
	return size
}
