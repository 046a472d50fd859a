// Package stack gives integration tests a Kafka cluster, a schema registry and a blob store: real ones, without Docker.
//
// Get uses what the environment names (KAFKA_BROKERS, SCHEMA_REGISTRY_URL, AZURE_STORAGE_CONNECTION_STRING) and starts
// the rest. Start starts a stack of a test's own, whose brokers the test can kill, stop, pause and start again. The
// components are resolved from Maven and npm into a cache directory, once ($STACK_CACHE, or blobfeed-stack in the
// user's cache).
//
// They run as child processes on ports of 127.0.0.1. On Linux the kernel kills them when this process ends,
// however it ends; the data of a killed run is removed by the next run. Tests that share a stack give their
// topics, groups, transactional ids, subjects and containers different names. Brokers do not create topics by
// themselves.
//
// Clients should set kgo.MetadataMinAge(100*time.Millisecond) and, to consume, kgo.FetchMaxWait(200*time.Millisecond):
// the defaults, 5 s each, cost a test on a new topic 5 s each.
package stack
