#!/usr/bin/env bash
# Every chip of tools/offline_compilers.sh, none of which is there:
# - `rondo isa`, held to tools/isa/budget.txt: registers, waves, spills, scratch, instructions per multiply-add. A compiler of
#   another Mesa than the budget's is only reported.
# - two models are set up, planned, allocated, loaded and recorded under the validation layers with that chip's limits, and
#   sessions end in the status of a device that does nothing.
# usage: tools/check_compilers.sh [COMMAND=build/dev/bin/rondo [FOLDER=build/isa]]
#   FOLDER  gets CHIP.json of isa, CHIP.err, and what the models' runs said
# Exit status 1 where a budget is exceeded, a compiler fails on a kernel, or a model does otherwise. Without the compilers: says why,
# and 0; with CI=true, 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
rondo=${1-build/dev/bin/rondo} folder=${2-build/isa}
[[ -x $rondo ]] || { echo "check_compilers: error: $rondo is not there; build it first" >&2; exit 1; }
if ! compilers=$(tools/offline_compilers.sh || tools/offline_compilers.sh sid); then
  echo "check_compilers: skipped: no compilers for GPUs here"
  if [[ ${CI-} == true ]]; then exit 1; fi
  exit 0
fi
mapfile -t chips <"$compilers/chips.txt"
rm -rf "$folder"
mkdir -p "$folder"

# shellcheck disable=SC2317  # called by xargs
compile() { # CHIP
  "$compilers/gpu" "$1" "$rondo" isa --budget tools/isa/budget.txt --json >"$folder/$1.json" 2>"$folder/$1.err" || :
}
# shellcheck disable=SC2317
set_up() { # CHIP NAME COMMAND...
  local log=$folder/$1-$2.txt status=0
  timeout 120 "$compilers/gpu" "$1" "$rondo" "${@:3}" --validate --pipeline-cache none >"$log" 2>&1 || status=$?
  if ((status != 1)) || ! grep -q "has finished nothing for 10 s" "$log" || grep -q "validation:" "$log"; then
    echo "$1: $2 ended with status $status, and not in the status of a device that does nothing; see $log"
    grep -E "^rondo: error" "$log" | head -3
    return 1
  fi
}
# shellcheck disable=SC2317
set_up_both() { # CHIP
  set_up "$1" demo generate -m samples/models/kjv-q8_0.gguf -p "And Jesus answered" -n 8 &&
    set_up "$1" 1b bench --random 1b --type q4_k -p 512 -n 4 -r 1
}
export -f compile set_up set_up_both
export rondo folder compilers

printf '%s\n' "${chips[@]}" | xargs -P "$(nproc)" -I CHIP bash -c 'compile CHIP'
status=0
/usr/bin/python3 tools/isa/summary.py tools/isa/budget.txt "$folder" "${chips[@]}" || status=1
# All at once: they wait.
if printf '%s\n' "${chips[@]}" | xargs -P "${#chips[@]}" -I CHIP bash -c 'set_up_both CHIP'; then
  echo "all ${#chips[@]} chips: two models set up, and stalled as they should"
else
  status=1
fi
exit "$status"
