-- The existing blobs, in Debezium's format: BRIDGE_ENVELOPE=enriched, which puts markers into another topic.
-- The row before an update or a deletion is only the key, and an overwrite can look like a first write. With the next
-- line, Flink looks up the row by its primary key.
SET 'table.exec.source.cdc-events-duplicate' = 'true';

CREATE TABLE blobs (
  path STRING,
  content_length BIGINT,
  event_id STRING,
  PRIMARY KEY (path) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = 'blob-enriched',
  'properties.bootstrap.servers' = 'localhost:9092',
  'properties.isolation.level' = 'read_committed',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json'
);

SELECT path, content_length, event_id FROM blobs;
