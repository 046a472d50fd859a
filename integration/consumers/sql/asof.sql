-- The state of each blob when it was downloaded. With BRIDGE_KEY_FORMAT=string, k is the path.
CREATE TABLE blobs (
  k STRING,
  `after` ROW<content_length BIGINT, event_id STRING>,
  `resolved` STRING,
  ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
  WATERMARK FOR ts AS TO_TIMESTAMP_LTZ(CAST(SUBSTRING(`resolved` FROM 1 FOR 13) AS BIGINT) - 1, 3),
  PRIMARY KEY (k) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'blob-changes',
  'properties.bootstrap.servers' = 'localhost:9092',
  'properties.isolation.level' = 'read_committed',
  'scan.watermark.emit.strategy' = 'on-event', -- use every marker, also while catching up
  'key.format' = 'raw',
  'value.format' = 'json',
  'value.fields-include' = 'EXCEPT_KEY'
);

CREATE TABLE downloads (
  path STRING,
  ts TIMESTAMP_LTZ(3),
  WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE
) WITH (
  'connector' = 'kafka',
  'topic' = 'downloads',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json',
  'json.timestamp-format.standard' = 'ISO-8601'
);

SELECT d.path, d.ts, b.`after`.content_length, b.`after`.event_id
FROM downloads AS d JOIN blobs FOR SYSTEM_TIME AS OF d.ts AS b ON d.path = b.k
WHERE b.`after` IS NOT NULL;
