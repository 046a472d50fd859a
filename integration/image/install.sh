#!/usr/bin/env bash
# Makes sure that these tools are installed: buildah, which builds and runs images without an engine, and ip.
set -euo pipefail
# One installation at a time: apt-get does not wait for another one.
exec 9<"$(dirname "$0")/.."
flock 9
if [ "$(id -u)" != 0 ]; then
	echo "building an image: needs root: run the tests as root" >&2
	exit 1
fi
for tool in buildah ip; do
	if ! command -v "$tool" >/dev/null; then
		if ! command -v apt-get >/dev/null; then
			echo "building an image: $tool is not installed: install buildah and iproute2" >&2
			exit 1
		fi
		{ apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends buildah iproute2; } >&2
	fi
done
