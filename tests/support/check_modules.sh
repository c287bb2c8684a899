#!/usr/bin/env bash
# check_modules.sh FOLDER: every SPIR-V module of the folder must be valid for Vulkan 1.2 (one with cooperative matrices or dot products of halves by the newer SPIRV-Tools
# that RONDO_TEST_SPIRV_TOOLS runs, where it is set), and without these and integer dot products one that MoltenVK can translate for Apple's GPUs: it does so with SPIRV-Cross, in Metal 2.3 or later, where simd-groups have all that ours use.
set -euo pipefail
folder=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
modules=("$folder"/*.spv)
[[ -e ${modules[0]} ]] || { echo "check_modules: there is no module in $folder" >&2; exit 1; }

# SPIRV-Cross knows no integer dot products; a device whose driver does without them does not get kernels that have some.
has_integer_dots() { [[ $(spirv-dis "$1" 2>/dev/null) == *"OpCapability DotProductInput4x8BitPacked"* ]]; }
# With cooperative matrices, or dot products of halves: OpCapability (2 words) 6022, 6912. SPIRV-Tools of Debian 12 don't know them, SPIRV-Cross neither.
is_newer() { od -An -v -tu4 -w4 "$1" | grep -A1 -x ' *131089' | grep -qxE ' *(6022|6912)'; }
check() { # MODULE
  if is_newer "$1"; then
    [[ -z ${RONDO_TEST_SPIRV_TOOLS-} ]] || "$RONDO_TEST_SPIRV_TOOLS" spirv-val --target-env vulkan1.2 "$1" >"$work/log" 2>&1
    return
  fi
  spirv-val --target-env vulkan1.2 "$1" >"$work/log" 2>&1 || return 1
  if has_integer_dots "$1"; then return 0; fi
  spirv-cross --msl --msl-version 20300 "$1" --output "$work/kernel.metal" >"$work/log" 2>&1 &&
    grep -q '^kernel void' "$work/kernel.metal"
}
# A module that ends too early is not one: what would pass for everything is no check.
head -c 400 "${modules[0]}" >"$work/wrong.spv"
if check "$work/wrong.spv"; then
  echo "check_modules: a module without its end passes" >&2
  exit 1
fi
failed=0
for module in "${modules[@]}"; do
  check "$module" || { echo "$(basename "$module"): $(head -2 "$work/log")"; failed=1; }
done
echo "${#modules[@]} modules checked"
exit "$failed"
