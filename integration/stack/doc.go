// Package stack gives integration tests a Kafka cluster, a schema registry and a blob store: real ones, without Docker.
//
// Get uses what the environment names (KAFKA_BROKERS, SCHEMA_REGISTRY_URL, AZURE_STORAGE_CONNECTION_STRING) and starts the
// rest; Start starts a stack of a test's own, whose brokers the test can kill and restart. The components are resolved
// from Maven and npm into a cache directory, once, and run as child processes that can't outlive this process.
package stack
