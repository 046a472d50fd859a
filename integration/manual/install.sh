#!/usr/bin/env bash
# Sees to it that there is kcat, with which the manual reads topics.
set -euo pipefail
# One installation at a time: apt-get does not wait for another one.
exec 9<"$(dirname "$0")/.."
flock 9
command -v kcat && exit
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "there is no kcat: install it (Debian: apt-get install kcat)" >&2
	exit 1
fi
{ apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends kcat; } >&2
command -v kcat
