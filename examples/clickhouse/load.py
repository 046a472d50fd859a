"""Keeps a table of all blobs in chDB, which is ClickHouse in the process: see blobs.sql.

The offsets are committed after the records are stored. After a crash some records come again, and the table replaces
rows by `updated`, so they change nothing.
"""
import json
import os
import pathlib
import signal
import sys

from chdb import session
from confluent_kafka import Consumer, TopicPartition

BATCH = 5000


def main():
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    db = session.Session(os.environ["DATABASE"])
    for statement in pathlib.Path(__file__).with_name("blobs.sql").read_text().split(";\n"):
        db.query(statement)
    consumer = Consumer({"bootstrap.servers": os.environ["KAFKA_BROKERS"],
                         "group.id": os.environ.get("GROUP", "clickhouse"), "enable.auto.commit": False,
                         "isolation.level": "read_committed", "auto.offset.reset": "earliest"})
    topic = os.environ["TOPIC"]
    parts = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, p) for p in parts])  # each continues at its committed offset
    print("reading", len(parts), "partitions", flush=True)
    while not stopped:
        records = consumer.consume(BATCH, timeout=1)
        rows = []
        for record in records:
            if record.error():
                sys.exit(str(record.error()))
            rows.append(json.dumps({"_partition": record.partition(), "value": record.value().decode()}))
        if rows:
            db.query("insert into records format JSONEachRow " + "\n".join(rows))
            consumer.commit(asynchronous=False)
            print("stored", len(rows), "records", flush=True)
    consumer.close()


if __name__ == "__main__":
    main()
