#!/usr/bin/env bash
# Checks and tests the alert rules with promtool: the installed one, or Debian's, unpacked into the cache and not installed.
set -euo pipefail
cd "$(dirname "$0")/prometheus"
promtool=${PROMTOOL:-$(command -v promtool || true)}
if [ -z "$promtool" ]; then
	cache=${STACK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/blobfeed-stack}/promtool
	promtool=$cache/usr/bin/promtool
	if [ ! -x "$promtool" ]; then
		if ! command -v apt-get >/dev/null; then
			echo "there is no promtool: install Prometheus, or name one in PROMTOOL" >&2
			exit 1
		fi
		mkdir -p "$cache"
		(cd "$cache" && { apt-get download -q prometheus || { apt-get update -q && apt-get download -q prometheus; }; } >&2 && dpkg -x prometheus_*.deb .)
	fi
fi
"$promtool" check rules alerts.yaml
"$promtool" test rules alerts_test.yaml
