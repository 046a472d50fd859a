// Package manual finds the commands that the manual shows, and says of each block how it is tried, or why it can't be.
// The table, Uses, has every block of commands in README.md and docs/*.md: one that is not in it fails a test, as does
// an entry without a block. The integration tests run them, as a reader would: page by page, with the environment that
// the blocks before have left.
//
// A block that is marked sh has only commands. In any other block, the lines that begin with "$ " are
// commands. A block of settings is marked env.
package manual
