"""Reads topics to their ends, read_committed, with nothing but the brokers and the registry, and prints a JSON document
for each record, its Avro decoded by Confluent's client.

usage: decode.py brokers registry-url topic...
"""

import json
import sys
import uuid

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

brokers, registry, *topics = sys.argv[1:]
decode = AvroDeserializer(SchemaRegistryClient({"url": registry}))
consumer = Consumer({
    "bootstrap.servers": brokers,
    "group.id": str(uuid.uuid4()),
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
})

left = set()
for topic in topics:
    for partition in consumer.list_topics(topic, timeout=30).topics[topic].partitions:
        left.add((topic, partition))
consumer.assign([TopicPartition(t, p, OFFSET_BEGINNING) for t, p in left])


def decoded(data, topic, field):
    if data is None or len(data) == 0:
        return data and ""
    if data[0] != 0:
        return data.decode()
    return decode(data, SerializationContext(topic, field))


while left:
    m = consumer.poll(30)
    if m is None:
        sys.exit(f"nothing came for 30 s; {left} are left")
    if m.error():
        if m.error().name() != "_PARTITION_EOF":
            sys.exit(str(m.error()))
        left.discard((m.topic(), m.partition()))
        continue
    print(json.dumps({
        "topic": m.topic(), "partition": m.partition(), "offset": m.offset(),
        "key": decoded(m.key(), m.topic(), MessageField.KEY), "value": decoded(m.value(), m.topic(), MessageField.VALUE),
        "null": m.value() is None, "headers": {k: v.decode() for k, v in m.headers() or []},
    }, default=str))
consumer.close()
