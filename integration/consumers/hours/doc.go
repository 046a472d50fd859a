// Package hours hands over the changes of a topic one complete hour at a time, for a consumer that writes a
// file per hour. It is an example to copy. Resolved markers say when an hour is complete. A checkpoint that
// is stored with the hour makes it exactly once, even if the consumer crashes.
//
// It knows no Kafka client. The consumer must read committed records only (isolation.level=read_committed).
package hours
