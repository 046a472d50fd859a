-- The existing blobs, with Avro: BRIDGE_FORMAT=avro. Keys are records with the field path.
CREATE TABLE blobs (
  key_path STRING,
  `after` ROW<path STRING, content_length BIGINT, event_id STRING>,
  PRIMARY KEY (key_path) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'blob-avro',
  'properties.bootstrap.servers' = 'localhost:9092',
  'properties.isolation.level' = 'read_committed',
  'key.format' = 'avro-confluent',
  'key.avro-confluent.url' = 'http://localhost:8081',
  'key.fields-prefix' = 'key_',
  'value.format' = 'avro-confluent',
  'value.avro-confluent.url' = 'http://localhost:8081',
  'value.fields-include' = 'EXCEPT_KEY'
);

SELECT `after`.path, `after`.content_length, `after`.event_id FROM blobs WHERE `after` IS NOT NULL;
