#!/usr/bin/env bash
# The archiver beside `zig-cc.sh`.
set -euo pipefail
exec "$(dirname "$0")/../.cache/cross/bin/python-zig" ar "$@"
