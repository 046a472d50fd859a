"""Reads the change feed with Azure's SDK and writes it to Kafka with Confluent's client."""

import json
import os
import sys
from datetime import datetime

from azure.storage.blob.changefeed import ChangeFeedClient
from confluent_kafka import Producer

failed = []


def delivered(error, _):
    if error is not None:
        failed.append(error)


def main():
    feed = ChangeFeedClient.from_connection_string(os.environ["AZURE_STORAGE_CONNECTION_STRING"])
    producer = Producer({"bootstrap.servers": os.environ["KAFKA_BROKERS"], "acks": "all"})
    topic = os.environ["PEER_TOPIC"]
    end = datetime.strptime(os.environ["PEER_END"], "%Y-%m-%dT%H:%M:%SZ")
    for event in feed.list_changes(end_time=end):
        key = event["subject"].removeprefix("/blobServices/default/containers/").replace("/blobs/", "/", 1)
        value = json.dumps(event, default=str)
        while True:
            try:
                producer.produce(topic, value, key, on_delivery=delivered)
                break
            except BufferError:  # the client's buffer is full
                producer.poll(1)
        producer.poll(0)
    producer.flush()
    if failed:
        sys.exit(str(failed[0]))


main()
