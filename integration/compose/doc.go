// Package compose starts the services of a Compose file as processes, without an engine. Each has a network of its own
// with the file's names and ports, as a container has. Images stand for the components of package stack, in the same
// versions; environment, command, dependencies and health checks are those of the file. It needs root on Linux.
package compose
