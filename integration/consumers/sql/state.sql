-- The blobs that exist. Any key format will do: k is the text of the key.
CREATE TABLE blobs (
  k STRING,
  `after` ROW<path STRING, content_length BIGINT, event_id STRING>,
  PRIMARY KEY (k) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'blob-changes',
  'properties.bootstrap.servers' = 'localhost:9092',
  'properties.isolation.level' = 'read_committed',
  'key.format' = 'raw',
  'value.format' = 'json',
  'value.fields-include' = 'EXCEPT_KEY'
);

-- A deletion has no after; nor have markers, whose key is null.
SELECT `after`.path, `after`.content_length, `after`.event_id FROM blobs WHERE `after` IS NOT NULL;
