"""Keeps an embedding of each text blob in sqlite-vec, and deletes it when the blob is deleted.

Vectors and offsets are in one transaction of SQLite, so a crash loses and doubles nothing: see README.md.
Replace embed with your model.
"""
import hashlib
import json
import os
import signal
import sys
import urllib.error
import urllib.parse
import urllib.request

import apsw  # Python's own sqlite3 often cannot load extensions
import sqlite_vec
from confluent_kafka import Consumer, TopicPartition

DIMENSIONS = 64


def embed(text):
    """Hashes words: it needs no model, and finds texts with the same words."""
    vector = [0.0] * DIMENSIONS
    for word in text.lower().split():
        digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
        vector[digest[0] % DIMENSIONS] += 1 if digest[1] % 2 else -1
    length = sum(x * x for x in vector) ** 0.5 or 1.0
    return sqlite_vec.serialize_float32([x / length for x in vector])


def fetch(row):
    """Returns the text of just this version, None if it is gone: then its deletion, or the next version, follows."""
    url = os.environ["BLOBS_URL"] + "/" + urllib.parse.quote(row["path"])
    if row["blob_version"]:
        url += "?versionid=" + urllib.parse.quote(row["blob_version"])
    request = urllib.request.Request(url)
    if not row["blob_version"]:  # without versioning, only the same content: a later one has its own event
        request.add_header("If-Match", '"%s"' % row["etag"])
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read().decode("utf-8", "replace")
    except urllib.error.HTTPError as e:
        if e.code in (404, 412):
            return None
        raise


def open_store(path):
    db = apsw.Connection(path)
    db.set_busy_timeout(30000)
    db.enable_load_extension(True)
    sqlite_vec.load(db)
    db.execute("create table if not exists blobs (id integer primary key, path text unique, etag text)")
    db.execute(f"create virtual table if not exists vectors using vec0(embedding float[{DIMENSIONS}])")
    db.execute("create table if not exists progress (part integer primary key, next integer)")
    return db


def forget(db, path):
    db.execute("delete from vectors where rowid = (select id from blobs where path = ?)", (path,))
    db.execute("delete from blobs where path = ?", (path,))


def apply(db, record):
    if record.key() is None:  # a marker
        return
    change = json.loads(record.value())
    path, row = change["key"][0], change["after"]
    forget(db, path)
    if row is None or not (row["content_type"] or "").startswith(os.environ.get("TYPES", "text/")):
        return
    text = fetch(row)
    if text is None:
        return
    db.execute("insert into blobs (path, etag) values (?, ?)", (path, row["etag"]))
    db.execute("insert into vectors (rowid, embedding) values (?, ?)", (db.last_insert_rowid(), embed(text)))


def main():
    db, topic, stopped = open_store(os.environ["DATABASE"]), os.environ["TOPIC"], []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    consumer = Consumer({"bootstrap.servers": os.environ["KAFKA_BROKERS"], "group.id": "unused",
                         "enable.auto.commit": False, "isolation.level": "read_committed",
                         "auto.offset.reset": "earliest"})
    known = dict(db.execute("select part, next from progress"))
    parts = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, p, known.get(p, 0)) for p in parts])
    print("reading", len(parts), "partitions", flush=True)
    while not stopped:
        records = consumer.consume(500, timeout=1)
        if not records:
            continue
        with db:  # one transaction
            for record in records:
                if record.error():
                    sys.exit(str(record.error()))
                apply(db, record)
                db.execute("insert into progress values (?, ?) on conflict (part) do update set next = excluded.next",
                           (record.partition(), record.offset() + 1))


if __name__ == "__main__":
    main()
