// Keeps a list of all blobs in a file: the account as of the newest marker that every partition has.
//
// The file also has the offsets to continue at, and is replaced as a whole, so a crash loses and doubles nothing. See
// README.md.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import kafkajs from 'kafkajs';
import snappy from 'kafkajs-snappy';

const { Kafka, CompressionCodecs, CompressionTypes, logLevel } = kafkajs;
CompressionCodecs[CompressionTypes.Snappy] = snappy; // the bridge's default

const { KAFKA_BROKERS, TOPIC, FILE } = process.env;
const kafka = new Kafka({ brokers: KAFKA_BROKERS.split(','), logLevel: logLevel.ERROR });

// What is stored: the marker, where each partition continues, and of each path what you want to know.
const state = existsSync(FILE) ? JSON.parse(readFileSync(FILE, 'utf8')) : { resolved: '', next: {}, blobs: {} };

const admin = kafka.admin();
await admin.connect();
const ends = await admin.fetchTopicOffsets(TOPIC);
await admin.disconnect();
const waiting = new Map(ends.map(({ partition }) => [partition, []])); // what no common marker covers yet

// The newest marker that all partitions have; '' if one has none. Markers sort as text.
function common() {
  const newest = [...waiting.values()].map(changes => changes.findLast(c => c.resolved)?.resolved ?? '');
  return newest.reduce((a, b) => (a < b ? a : b));
}

function merge(resolved) {
  for (const [partition, changes] of waiting) {
    const covered = changes.splice(0, changes.findLastIndex(c => c.resolved === resolved) + 1);
    for (const { path, after } of covered.filter(c => !c.resolved)) {
      if (after) state.blobs[path] = { etag: after.etag, size: after.content_length };
      else delete state.blobs[path];
    }
    state.next[partition] = String(BigInt(covered.at(-1).offset) + 1n);
  }
}

function store(resolved) {
  state.resolved = resolved;
  writeFileSync(FILE + '.new', JSON.stringify(state));
  renameSync(FILE + '.new', FILE);
  console.log('complete up to', resolved);
}

// A group that nobody else is in: the offsets are in the file.
const consumer = kafka.consumer({ groupId: `blobs-${process.pid}-${Date.now()}` }); // reads committed by default
await consumer.connect();
await consumer.subscribe({ topic: TOPIC, fromBeginning: true });
await consumer.run({
  autoCommit: false,
  eachMessage: async ({ partition, message }) => {
    if (BigInt(message.offset) < BigInt(state.next[partition] ?? 0)) return; // fetched before the seek below
    const value = JSON.parse(message.value);
    const changes = waiting.get(partition);
    changes.push({ path: value.key?.[0], after: value.after, resolved: value.resolved, offset: message.offset });
    if (!value.resolved) return;
    const resolved = common();
    if (!resolved) return;
    merge(resolved);
    store(resolved);
  },
});
for (const [partition, offset] of Object.entries(state.next)) {
  consumer.seek({ topic: TOPIC, partition: Number(partition), offset });
}
console.log('reading', waiting.size, 'partitions');
