#!/bin/sh
# Runs a program that may take no more than FUZZMEMORY KiB of memory: Go ends it with "out of memory" beyond that.
# For go test -exec; the workers of the fuzzer inherit the limit.
ulimit -d "${FUZZMEMORY:-1048576}" || exit 1
exec "$@"
