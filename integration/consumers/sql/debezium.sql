-- The blobs that exist, as Debezium would tell it: BRIDGE_ENVELOPE=enriched, with which markers are in a topic of their own.
-- What was there before an update or a deletion is the key only, and an overwrite may look like a first write: with the next
-- line Flink looks up the row by its primary key.
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
