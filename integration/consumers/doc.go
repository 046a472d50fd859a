// Package consumers has jobs that read the bridge's topic, in Java: Kafka Streams, Flink, Flink SQL, Kafka
// Connect. The integration tests TestConsumers and TestConsumersOfScan run them over what the bridge wrote.
// docs/consumers.md shows or links them; the test of this package checks that.
//
//	src/main/java  a class per job; each reads to the end of its topics and prints JSON lines
//	sql            scripts for Flink's SQL client, which the class Sql runs
//	connect        settings of a sink connector; the class Unwrap runs its converters and its transformation
//	hours          the same in Go: complete hours, exactly once
package consumers
