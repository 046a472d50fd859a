//go:build unix

package dir

import "syscall"

// nonblock keeps the opening of a FIFO from waiting for its writer.
const nonblock = syscall.O_NONBLOCK
