// Package tracing sends OpenTelemetry traces of what the engine does, if the standard OTEL_* variables ask for it.
//
// A trace is a transaction: its root "deliver", or "resolve" where it holds markers only, has the children
// "feed read", "encode", "publish" and "commit". A transaction can have hundreds of blocks, read and encoded by
// several shards side by side and ahead of it, so a child goes from the first begin to the last end, and says
// how long it was busy between. One that came to nothing has the status error; so has a "retry", a trace of its
// own for each error that is tried again.
//
// The engine never waits for a collector: spans go into a bounded queue, and what does not fit is dropped.
package tracing
