// Package faults is an HTTP proxy in front of Azurite's blob service. It misbehaves at a given rate: it
// refuses, breaks, stalls and repeats itself, with the bytes that Azure would send. Through it, a reader sees
// a change feed that is slow, torn and out of date. The feed behind it is whole, so the reader has to find
// the same events as without it.
//
// A seed and the order of the requests decide which requests are hit. Of the kinds of faults that suit a
// request, it gets the one that was tried least. So a short run meets all kinds. Stats counts the requests
// and what was done to them.
//
// The proxy forwards path, query and headers unchanged, because they are signed; the host is not. If it
// changes the query of a listing, it signs the request again, with the account's key. A Proxy is safe for
// concurrent use.
package faults
