// Package hours hands over the changes of a topic by complete hours, as a consumer does that writes a file per hour. It
// is an example to copy: resolved markers say when an hour is complete, and a checkpoint that is stored with the hour
// makes it exactly once, over crashes of the consumer, too.
//
// It knows no Kafka client. The consumer must read committed records only (isolation.level=read_committed).
package hours
