package dump

import "blobfeed/source/ocf"

// columns returns an event in the names that its record has, without the columns that are empty. An event of which no
// record can be made is shown, too, so this does not go through an encoder.
func columns(e *ocf.Event) map[string]any {
	doc := map[string]any{"topic": e.Topic, "subject": e.Subject}
	for name, text := range map[string]string{
		"event_type": e.EventType, "event_time": e.EventTime, "event_id": e.ID, "api": e.API,
		"client_request_id": e.ClientRequestID, "request_id": e.RequestID,
		"etag": e.ETag, "content_type": e.ContentType, "blob_type": e.BlobType, "blob_tier": e.BlobTier,
		"blob_version": e.BlobVersion, "container_version": e.ContainerVersion, "url": e.URL,
		"sequencer": e.Sequencer, "snapshot": e.Snapshot,
	} {
		if text != "" {
			doc[name] = text
		}
	}
	if e.SchemaVersion != 0 {
		doc["schema_version"] = e.SchemaVersion
	}
	if e.HasContentLength {
		doc["content_length"] = e.ContentLength
	}
	for name, list := range map[string][]ocf.Pair{
		"previous_info": e.PreviousInfo, "async_operation_info": e.AsyncOperationInfo,
		"restore_point_marker": e.RestorePointMarker, "extra": e.Extra,
	} {
		if len(list) > 0 {
			doc[name] = pairs(list)
		}
	}
	if len(e.BlobPropertiesUpdated) > 0 {
		changes := map[string]any{}
		for _, c := range e.BlobPropertiesUpdated {
			changes[c.Name] = map[string]string{"current": c.Current, "previous": c.Previous}
		}
		doc["blob_properties_updated"] = changes
	}
	if len(e.BlobTagsUpdated) > 0 {
		sets := map[string]any{}
		for _, s := range e.BlobTagsUpdated {
			sets[s.Name] = pairs(s.Tags)
		}
		doc["blob_tags_updated"] = sets
	}
	return doc
}

func pairs(list []ocf.Pair) map[string]string {
	m := map[string]string{}
	for _, p := range list {
		m[p.Name] = p.Value
	}
	return m
}
