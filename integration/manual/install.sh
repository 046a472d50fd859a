#!/usr/bin/env bash
# Sees to it that there is kcat, with which the manual reads topics.
set -euo pipefail
command -v kcat && exit
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "there is no kcat: install it (Debian: apt-get install kcat)" >&2
	exit 1
fi
{ apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends kcat; } >&2
command -v kcat
