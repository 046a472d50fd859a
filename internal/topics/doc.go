// Package topics creates, reads and judges the topics that a bridge writes to.
//
// A Plan says what each topic is for. Everything follows from that: the settings that a new topic gets, the settings
// that an existing one must have, and the advice if it has others. The engine applies it when it opens a topic, the
// checks apply it before a start, so both give the same verdict in the same words.
package topics
