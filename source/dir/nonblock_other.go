//go:build !unix

package dir

// nonblock is for FIFOs, which are files of Unix.
const nonblock = 0
