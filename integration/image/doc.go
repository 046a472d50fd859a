// Package image builds the image of a release from the Dockerfile and runs it, with buildah: without an engine, a
// registry, or any other image. It needs root on Linux.
package image
