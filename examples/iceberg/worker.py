"""Keeps a table of all blobs in Iceberg: appends changes as they come, and merges them up to a marker.

`changes` has every record, and in its newest snapshot the offsets to continue at. `blobs` has the account as of a
marker. Each commit is one snapshot, so a crash loses and doubles nothing: see README.md.
"""
import json
import os
import signal
import sys

import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition
from pyiceberg.catalog import load_catalog
from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual, In, Or

ROW = [("path", pa.string()), ("updated", pa.string()), ("container", pa.string()), ("content_type", pa.string()),
       ("content_length", pa.int64()), ("etag", pa.string()), ("event_time", pa.string())]  # add columns as you like
BLOBS = pa.schema(ROW)
CHANGES = pa.schema([("part", pa.int32()), ("offset", pa.int64()), ("resolved", pa.string()),
                     ("deleted", pa.bool_())] + ROW)
BATCH = 20000


def state(table, name):
    """Returns what the newest snapshot with this property says."""
    snapshot = table.current_snapshot()
    while snapshot and name not in snapshot.summary.additional_properties:
        snapshot = table.snapshot_by_id(snapshot.parent_snapshot_id) if snapshot.parent_snapshot_id else None
    return json.loads(snapshot.summary.additional_properties[name]) if snapshot else {}


def change(record):
    value = json.loads(record.value())
    row = value.get("after") or {}
    return {"part": record.partition(), "offset": record.offset(), "resolved": value.get("resolved"),
            "deleted": not row, **{name: row.get(name) for name, _ in ROW},
            "path": value["key"][0] if "key" in value else None, "updated": value.get("updated")}


def append(changes, records):
    rows = [change(r) for r in records]
    following = state(changes, "next") | {str(r["part"]): r["offset"] + 1 for r in rows}
    changes.append(pa.Table.from_pylist(rows, CHANGES), snapshot_properties={"next": json.dumps(following)})
    print("appended", len(rows), "records", flush=True)


def merge(changes, blobs, parts):
    """Brings blobs to the newest marker that every partition has."""
    merged = state(blobs, "merged")
    fresh = [And(EqualTo("part", p), GreaterThanOrEqual("offset", merged.get(str(p), 0))) for p in parts]
    rows = changes.scan(row_filter=Or(*fresh) if len(fresh) > 1 else fresh[0]).to_arrow().to_pylist()
    newest = {p: max((r["resolved"] for r in rows if r["part"] == p and r["resolved"]), default="") for p in parts}
    resolved = min(newest.values())
    if not resolved:  # a partition has none: its changes may be missing
        return
    ends = {r["part"]: r["offset"] for r in sorted(rows, key=lambda r: r["offset"]) if r["resolved"] == resolved}
    due = [r for r in rows if r["path"] and r["offset"] < ends[r["part"]]]
    last = {r["path"]: r for r in sorted(due, key=lambda r: (r["part"], r["offset"]))}
    with blobs.transaction() as tx:  # readers see both or neither
        if last:
            tx.delete(In("path", list(last)))
        kept = [{name: r[name] for name, _ in ROW} for r in last.values() if not r["deleted"]]
        tx.append(pa.Table.from_pylist(kept, BLOBS), snapshot_properties={
            "resolved": resolved, "merged": json.dumps({p: offset + 1 for p, offset in ends.items()})})
    print("merged up to", resolved, flush=True)


def main():
    topic, stopped = os.environ["TOPIC"], []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    catalog = load_catalog()
    catalog.create_namespace_if_not_exists("azure")
    changes = catalog.create_table_if_not_exists("azure.changes", CHANGES)
    blobs = catalog.create_table_if_not_exists("azure.blobs", BLOBS)
    consumer = Consumer({"bootstrap.servers": os.environ["KAFKA_BROKERS"], "group.id": "unused",
                         "enable.auto.commit": False, "isolation.level": "read_committed",
                         "auto.offset.reset": "earliest"})
    parts = list(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
    known = state(changes, "next")
    consumer.assign([TopicPartition(topic, p, known.get(str(p), 0)) for p in parts])
    print("reading", len(parts), "partitions", flush=True)
    merge(changes, blobs, parts)  # what a crash left
    while not stopped:
        records = consumer.consume(BATCH, timeout=float(os.environ.get("APPEND_SECONDS", "60")))
        for record in records:
            if record.error():
                sys.exit(str(record.error()))
        if records:
            append(changes, records)
        if any(r.key() is None for r in records):
            merge(changes, blobs, parts)


if __name__ == "__main__":
    main()
