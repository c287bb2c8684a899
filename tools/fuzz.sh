#!/usr/bin/env bash
# Builds the fuzz targets (preset asan) and runs each: graph files, GGUF, safetensors, and SPIR-V for the simulator.
# usage: tools/fuzz.sh [SECONDS]
#   SECONDS  for each target, 60 unless given
# A target fails at a crash, a leak, a report of the sanitizers, an input that takes more than 5 seconds, or more than 2 GB of
# memory. Exit status 1 then, with the path of the input and the command that repeats it. Inputs that reach more code are kept
# in build/fuzz/corpus, where the next run begins.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  echo "usage: tools/fuzz.sh [SECONDS]" >&2
  exit 2
}
[[ $# -le 1 ]] || usage
seconds=${1-60}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || usage

if [[ ! -e build/asan/build.ninja || CMakePresets.json -nt build/asan/build.ninja ]]; then
  cmake --preset asan
fi
cmake --build --preset asan --target rondo_fuzzers

export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
build/asan/bin/rondo_fuzz_seeds build/asan/seeds

# run_target FORMAT MAX_LEN SEEDS
run_target() {
  local target=build/asan/bin/$1_fuzzer corpus=build/fuzz/corpus/$1 found=build/fuzz/found/$1 log=build/fuzz/$1.log input
  mkdir -p "$corpus"
  rm -rf "$found"
  mkdir -p "$found"
  local dictionary=()
  [[ ! -e tests/fuzz/$1.dict ]] || dictionary=("-dict=tests/fuzz/$1.dict")
  if "$target" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=2048 -max_len="$2" "${dictionary[@]}" \
    -artifact_prefix="$found/" -print_final_stats=1 "$corpus" "$3" >"$log" 2>&1; then
    printf '\n== %s, %s seconds\n' "$1" "$seconds"
    grep -E 'INITED|DONE|exec/s:|peak_rss|number_of_executed' "$log" | tail -n 4
    return
  fi
  printf '\n== %s failed\n' "$1"
  tail -n 60 "$log"
  input=$(find "$found" -type f | sort | head -n 1)
  echo "fuzz: error: $1 failed on ${input:-no single input, see $log}"
  [[ -z $input ]] || echo "fuzz: repeat with: UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 $target -timeout=5 -rss_limit_mb=2048 $input"
  return 1
}

status=0
# run_two FORMAT MAX_LEN SEEDS FORMAT MAX_LEN SEEDS: at once, as each takes one core
run_two() {
  run_target "$1" "$2" "$3" &
  local first=$!
  run_target "$4" "$5" "$6" || status=1
  wait "$first" || status=1
}
run_two graph_json 16384 tests/fuzz/corpus/graph_json gguf 65536 build/asan/seeds/gguf
run_two safetensors 16384 build/asan/seeds/safetensors spirv 16384 build/asan/seeds/spirv
exit "$status"
