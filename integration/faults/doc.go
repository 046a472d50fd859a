// Package faults is an HTTP proxy in front of a blob service, Azurite's, that misbehaves at a given rate: it refuses,
// breaks, stalls and repeats itself, with the bytes that Azure would send. What a reader of the change feed sees
// through it is slow, torn and out of date, but the feed behind it is whole: the reader has to come to the same events
// as without it.
//
// Which requests are hit comes from a seed and their order; of the kinds that a request can have, the one that was
// tried least comes next, so that a short run meets all of them. Stats tells what was asked for and what was done to
// it.
//
// Path, query and headers go on as they are, for they are signed; the host is not. A listing whose query is changed is
// signed again, with the account's key. A Proxy is safe for concurrent use.
package faults
