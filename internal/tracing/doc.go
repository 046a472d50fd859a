// Package tracing sends OpenTelemetry traces of what the engine does, if the standard OTEL_* variables ask for it.
//
// A trace is a transaction. Its root is "deliver", or "resolve" if it holds only markers. The children are
// "feed read", "encode", "publish" and "commit". A transaction can have hundreds of blocks, which several
// shards read and encode side by side, ahead of it. So a child goes from the first begin to the last end, and
// says how long it was busy. A transaction that failed has the status error. Each error that is tried again
// is a trace of its own, "retry", with the status error.
//
// The engine never waits for a collector: spans go into a bounded queue, and what does not fit is dropped.
package tracing
