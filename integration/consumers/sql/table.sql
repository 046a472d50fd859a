-- The existing blobs, from a compacted topic: BRIDGE_ENVELOPE=row, BRIDGE_KEY_FORMAT=string, BRIDGE_OPTIONS=none,
-- BRIDGE_RESOLVED_TO=topic. Deletions are null values.
CREATE TABLE blobs (
  path STRING,
  content_length BIGINT,
  event_id STRING,
  PRIMARY KEY (path) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'blob-table',
  'properties.bootstrap.servers' = 'localhost:9092',
  'properties.isolation.level' = 'read_committed',
  'key.format' = 'raw',
  'value.format' = 'json'
);

SELECT path, content_length, event_id FROM blobs;
