// Reads the change feed with Azure's SDK and writes it to Kafka with KafkaJS.
const { BlobChangeFeedClient } = require("@azure/storage-blob-changefeed");
const { Kafka, logLevel } = require("kafkajs");

function record(event) {
  const key = event.subject.replace("/blobServices/default/containers/", "").replace("/blobs/", "/");
  return { key, value: JSON.stringify(event) };
}

async function main() {
  const feed = BlobChangeFeedClient.fromConnectionString(process.env.AZURE_STORAGE_CONNECTION_STRING);
  const kafka = new Kafka({ brokers: process.env.KAFKA_BROKERS.split(","), logLevel: logLevel.ERROR });
  const producer = kafka.producer();
  await producer.connect();
  // KafkaJS does not batch by itself, so a page of the SDK is a batch.
  for await (const page of feed.listChanges({ end: new Date(process.env.PEER_END) }).byPage()) {
    await producer.send({ topic: process.env.PEER_TOPIC, acks: -1, messages: page.events.map(record) });
  }
  await producer.disconnect();
}

main().catch((err) => {
  console.error(err);
  process.exit(1);
});
