// Package ocf reads Avro object container files as the change feed writes them: append blobs that may end anywhere.
//
// Framing and decoding are separate. ParseHeader and Header.ReadBlock find whole blocks in a range of the
// file. ErrShort means a torn tail: come back with more bytes. *CorruptError means damage: more bytes won't
// help. Header.Events decodes a block by a plan, compiled from the writer schema that the file itself
// carries. So a chunk of any schema version, known or not, fills the same Event by field names.
//
// # Hostile bytes
//
// Every count, length and index is checked before it is used. Limits caps sizes before memory is asked for.
// What a block may make us allocate is proportional to its size and bounded by Limits. A schema can make
// values of no bytes at all, such as records of records of nulls; a budget bounds them. No input panics or
// hangs. Damage is reported as soon as the bytes at hand prove it; ErrShort is for tails that may still
// become whole.
//
// A Header and its Plan are immutable and safe for concurrent use.
package ocf
