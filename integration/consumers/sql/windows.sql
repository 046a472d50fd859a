-- Changes per hour. Flink emits an hour when every partition has a marker past its end, so the hour is complete.
SET 'table.local-time-zone' = 'UTC';

CREATE TABLE changes (
  `after` ROW<path STRING, content_length BIGINT>,
  `resolved` STRING,
  ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
  -- NULL (no watermark) except for markers. Minus 1, because a change just above a marker can be in the same millisecond.
  WATERMARK FOR ts AS TO_TIMESTAMP_LTZ(CAST(SUBSTRING(`resolved` FROM 1 FOR 13) AS BIGINT) - 1, 3)
) WITH (
  'connector' = 'kafka',
  'topic' = 'blob-changes',
  'properties.bootstrap.servers' = 'localhost:9092',
  'properties.isolation.level' = 'read_committed',
  'scan.watermark.emit.strategy' = 'on-event', -- use every marker, also while catching up
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

SELECT window_start, COUNT(*) AS changes, COUNT(`after`) AS upserts
FROM TABLE(TUMBLE(TABLE changes, DESCRIPTOR(ts), INTERVAL '1' HOUR))
WHERE `resolved` IS NULL
GROUP BY window_start, window_end;
