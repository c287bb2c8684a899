#!/usr/bin/env bash
# Random calls of the session API (SessionFuzzTest) under the address and undefined-behaviour sanitizers, then under the thread
# sanitizer, on lavapipe unless VK_DRIVER_FILES says otherwise.
# usage: tools/fuzz_calls.sh [ROUNDS [SEED]]
#   ROUNDS  for each sanitizer, 2000 unless given
#   SEED    of the first round; the others count on from it
# Exit status 1 at the first report, or call that did what it must not: the round's seed and its calls are printed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  echo "usage: tools/fuzz_calls.sh [ROUNDS [SEED]]" >&2
  exit 2
}
[[ $# -le 2 && ${1-1} =~ ^[1-9][0-9]*$ && ${2-1} =~ ^[0-9]+$ ]] || usage
export RONDO_TEST_ROUNDS=${1-2000} RONDO_TEST_SEED=${2-1}

lavapipe=(/usr/share/vulkan/icd.d/lvp_icd*.json)
export VK_DRIVER_FILES=${VK_DRIVER_FILES-${lavapipe[0]}}
export VK_ICD_FILENAMES=$VK_DRIVER_FILES
# Drivers keep what they allocated until the process ends.
export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/tests/support/tsan.supp"
for sanitizer in asan tsan; do
  if [[ ! -e build/$sanitizer/build.ninja || CMakePresets.json -nt build/$sanitizer/build.ninja ]]; then
    cmake --preset "$sanitizer"
  fi
  cmake --build --preset "$sanitizer" --target rondo_device_tests
  "build/$sanitizer/bin/device_tests" --gtest_filter='SessionFuzz*'
done
