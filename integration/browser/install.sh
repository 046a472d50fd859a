#!/usr/bin/env bash
# Finds Chromium, or installs Debian's, and fetches Playwright once. Prints the browser's path and that of the modules.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${STACK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/blobfeed-stack}/browser
mkdir -p "$cache"
# One installation at a time: apt-get does not wait for another one.
exec 9<"$here/.."
flock 9

find_browser() {
	for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome; do
		[ -n "$name" ] && command -v "$name" && return
	done
	return 1
}
if ! browser=$(find_browser); then
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "there is no Chromium: install it (Debian: apt-get install chromium), or name one in CHROMIUM" >&2
		exit 1
	fi
	{ apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends chromium fonts-dejavu-core; } >&2
	browser=$(find_browser)
fi
# Playwright's core alone: it downloads no browser of its own.
if ! cmp -s "$here/package.json" "$cache/package.json.done"; then
	cp "$here/package.json" "$cache/package.json"
	npm install --prefix "$cache" --omit=dev --ignore-scripts --no-package-lock --no-audit --no-fund --loglevel=error >&2
	cp "$here/package.json" "$cache/package.json.done"
fi
echo "$browser"
echo "$cache/node_modules"
