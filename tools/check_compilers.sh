#!/usr/bin/env bash
# `rondo isa` on every chip of tools/offline_compilers.sh, held to tools/isa/budget.txt: registers, waves, spills, scratch,
# instructions per multiply-add. A compiler of another Mesa than the budget's is only reported.
# usage: tools/check_compilers.sh [COMMAND=build/dev/bin/rondo [FOLDER=build/isa]]
#   FOLDER  gets CHIP.txt, the table, and CHIP.json
# Exit status 1 where a budget is exceeded or a compiler fails on a kernel. Without the compilers: says why, and 0.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
rondo=${1-build/dev/bin/rondo} folder=${2-build/isa}
[[ -x $rondo ]] || { echo "check_compilers: error: $rondo is not there; build it first" >&2; exit 1; }
compilers=$(tools/offline_compilers.sh) || { echo "check_compilers: skipped: no compilers for GPUs here"; exit 0; }

rm -rf "$folder"
mkdir -p "$folder"
check() { # CHIP
  "$compilers/gpu" "$1" "$rondo" isa --budget tools/isa/budget.txt --json >"$folder/$1.json" 2>"$folder/$1.err"
}
export -f check
export rondo folder compilers
xargs -P "$(nproc)" -I CHIP bash -c 'check CHIP || :' <"$compilers/chips.txt"

mapfile -t chips <"$compilers/chips.txt"
/usr/bin/python3 tools/isa/summary.py tools/isa/budget.txt "$folder" "${chips[@]}"
