-- The existing blobs. Works with any key format: k is the text of the key.
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

-- Deletions and markers have no after.
SELECT `after`.path, `after`.content_length, `after`.event_id FROM blobs WHERE `after` IS NOT NULL;
