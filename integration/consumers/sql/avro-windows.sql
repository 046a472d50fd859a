-- Changes per hour, with Avro: BRIDGE_FORMAT=avro.
SET 'table.local-time-zone' = 'UTC';

CREATE TABLE changes (
  `after` ROW<path STRING, content_length BIGINT>,
  `resolved` STRING,
  ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
  WATERMARK FOR ts AS TO_TIMESTAMP_LTZ(CAST(SUBSTRING(`resolved` FROM 1 FOR 13) AS BIGINT) - 1, 3)
) WITH (
  'connector' = 'kafka',
  'topic' = 'blob-avro',
  'properties.bootstrap.servers' = 'localhost:9092',
  'properties.isolation.level' = 'read_committed',
  'scan.watermark.emit.strategy' = 'on-event',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'avro-confluent',
  'avro-confluent.url' = 'http://localhost:8081'
);

SELECT window_start, COUNT(*) AS changes, COUNT(`after`) AS upserts
FROM TABLE(TUMBLE(TABLE changes, DESCRIPTOR(ts), INTERVAL '1' HOUR))
WHERE `resolved` IS NULL
GROUP BY window_start, window_end;
