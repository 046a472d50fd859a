-- A row for each blob. Read it with FINAL, which leaves out older rows and deleted blobs.
create table if not exists blobs (
    path String, updated UInt128, is_deleted UInt8,
    container LowCardinality(String), content_type LowCardinality(String), content_length UInt64, etag String,
    event_time DateTime64(7, 'UTC'), row String
) engine = ReplacingMergeTree(updated, is_deleted) order by path;

-- How far each partition is complete.
create table if not exists markers (part UInt64, resolved UInt64) engine = ReplacingMergeTree(resolved) order by part;

-- Where records come from. load.py inserts them here. A server reads them itself, with another engine:
--   create table records (value String)
--   engine = Kafka('localhost:9092', 'blob-changes', 'clickhouse', 'JSONAsString');
create table if not exists records (_partition UInt64, value String) engine = Null;

create materialized view if not exists records_to_blobs to blobs as
select
    JSONExtractString(value, 'key', 1) as path,
    toUInt128(replaceOne(JSONExtractString(value, 'updated'), '.', '')) as updated,
    JSONType(value, 'after') = 'Null' as is_deleted,
    JSONExtractString(value, 'after', 'container') as container,
    JSONExtractString(value, 'after', 'content_type') as content_type,
    JSONExtractUInt(value, 'after', 'content_length') as content_length,
    JSONExtractString(value, 'after', 'etag') as etag,
    parseDateTime64BestEffortOrZero(JSONExtractString(value, 'after', 'event_time'), 7, 'UTC') as event_time,
    JSONExtractRaw(value, 'after') as row
from records where JSONHas(value, 'updated');

create materialized view if not exists records_to_markers to markers as
select _partition as part, toUInt64(substring(JSONExtractString(value, 'resolved'), 1, 19)) as resolved
from records where JSONHas(value, 'resolved');
