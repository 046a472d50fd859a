//go:build race

package ceiling

// raced says that allocations do not count: with the race detector, pools drop a part of what they are given.
const raced = true
