// Package integration holds the tests of the built program against real Kafka, a Schema Registry and Azurite. They are
// behind the build tag "integration"; make integration runs them. Nothing skips: what is missing is an error.
//
// Tests run side by side, because most of them wait. Those that measure memory or the time of a start run alone.
package integration
