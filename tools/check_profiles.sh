#!/usr/bin/env bash
# Every device profile of the command on one software driver, lavapipe unless VK_DRIVER_FILES says otherwise: `check --brief` and
# the demo model, clamped to the profile's limits; without rounded activations the model must continue its text as it does unclamped.
# Where the profile would round them, it must run so, too; how far rounding may move logits is for device_tests to say. Profiles that
# differ only beyond what such a driver has, or what kernels and the demo model come near, are one on it: the first stands for them.
# usage: tools/check_profiles.sh [--kernels-of "PROFILE..."] [COMMAND=build/dev/bin/rondo [PROFILE...]]
#   --kernels-of  `check --brief` only on these, and the model on all
# Exit status 1 where a kernel fails, or the text is another.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
kernels_of=
if [[ ${1-} == --kernels-of ]]; then
  kernels_of=${2:?no profiles after --kernels-of}
  shift 2
fi
rondo=${1-build/dev/bin/rondo}
shift || :
[[ -x $rondo ]] || { echo "check_profiles: error: $rondo is not there; build it first" >&2; exit 1; }
profiles=("$@")
if (($# == 0)); then
  groups=$(/usr/bin/python3 - tools/rondo/profiles/*.json <<'END'
import json
import sys

MOST = {"max_storage_range_bytes": 1 << 27, "max_allocation_bytes": 1 << 30, "max_grid": 65535, "max_storage_buffers": 8,
        "max_invocations": 1024, "max_shared_bytes": 32768, "max_push_bytes": 128}
groups = {}
for path in sys.argv[1:]:
    with open(path) as file:
        profile = json.load(file)
    name = profile.pop("name")
    for field in ("sources", "memory_budget_bytes"):
        profile.pop(field, None)
    profile["features"].sort()
    for field, most in MOST.items():
        profile[field] = min(profile[field], most)
    groups.setdefault(json.dumps(profile, sort_keys=True), []).append(name)
for names in groups.values():
    print(*names)
END
)
  while read -r first others; do
    profiles+=("$first")
    [[ -z $others ]] || echo "$first stands for $others"
  done <<<"$groups"
fi
for name in $kernels_of; do
  [[ " ${profiles[*]} " == *" $name "* ]] || { echo "check_profiles: error: --kernels-of: $name is none of the profiles: ${profiles[*]}" >&2; exit 1; }
done
if [[ -z ${VK_DRIVER_FILES-} ]]; then
  for manifest in /usr/local/share/vulkan/icd.d/lvp_icd*.json /usr/share/vulkan/icd.d/lvp_icd*.json; do
    if [[ -e $manifest ]]; then export VK_DRIVER_FILES=$manifest VK_ICD_FILENAMES=$manifest; fi
  done
  [[ -n ${VK_DRIVER_FILES-} ]] || { echo "check_profiles: error: lavapipe's ICD manifest (lvp_icd*.json) not found" >&2; exit 1; }
fi

continue_text() { # FLAGS...
  "$rondo" generate -m samples/models/kjv-q8_0.gguf -p "And Jesus answered" --temp 0 -n 32 --validate --pipeline-cache none "$@" 2>&1
}
# shellcheck disable=SC2317  # called by xargs
check_profile() { # NAME
  local report="the model continues its text" text
  if [[ -z $kernels_of || " $kernels_of " == *" $1 "* ]]; then
    report=$("$rondo" check --brief --as "$1" --pipeline-cache none 2>&1) || { grep -E "FAILED|rondo: error" <<<"$report" | head -5; echo "$1: kernels fail"; return 1; }
  fi
  text=$(continue_text --as "$1" --activations f32) || { printf '%s: the model fails:\n%s\n' "$1" "$text"; return 1; }
  if ! grep -qxF -- "$expected" <<<"$text"; then
    printf '%s: the model continues otherwise than\n  %s\n%s\n' "$1" "$expected" "$text"
    return 1
  fi
  text=$(continue_text --as "$1" --activations auto) || { printf '%s: the model fails with the activations of its choice:\n%s\n' "$1" "$text"; return 1; }
  echo "$1: $(tail -1 <<<"$report")"
}
export -f check_profile continue_text
export rondo expected kernels_of
unclamped=$(continue_text --activations f32) || { printf 'check_profiles: error: the model fails on the device itself:\n%s\n' "$unclamped" >&2; exit 1; }
expected=$(grep -v "^rondo:" <<<"$unclamped" | head -1)
[[ -n $expected ]] || { echo "check_profiles: error: the model says nothing" >&2; exit 1; }
printf '%s\n' "${profiles[@]}" | xargs -P "$(nproc)" -I NAME bash -c 'check_profile NAME'
