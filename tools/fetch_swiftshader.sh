#!/usr/bin/env bash
# Fetches SwiftShader, a second Vulkan driver that needs no GPU, from Debian's chromium-common without installing it.
# Prints the path of its ICD manifest, for VK_DRIVER_FILES and VK_ICD_FILENAMES. Later calls only print.
set -euo pipefail

cache=${XDG_CACHE_HOME:-$HOME/.cache}/rondo/swiftshader
manifest=$cache/vk_swiftshader_icd.json
if [[ -s $manifest && -s $cache/libvk_swiftshader.so ]]; then
  echo "$manifest"
  exit 0
fi

warn() {
  echo "fetch_swiftshader: warning: $1" >&2
  exit 1
}
command -v apt-get >/dev/null || warn "no apt-get here, so no SwiftShader"
mkdir -p "$cache"
work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
# Sandbox::User: as root, apt would download as a user of its own, who can't enter this folder.
(cd "$work" && apt-get -qq -o Acquire::Retries=3 -o APT::Sandbox::User=root download chromium-common >&2) ||
  warn "apt-get download chromium-common failed; is the package list there (apt-get update)?"
dpkg -x "$work"/chromium-common_*.deb "$work/tree" || warn "chromium-common can't be unpacked"
library=$(find "$work/tree" -name libvk_swiftshader.so -print -quit)
[[ -n $library ]] || warn "chromium-common holds no libvk_swiftshader.so any more"

mv "$library" "$cache/libvk_swiftshader.so"
cat >"$work/icd.json" <<JSON
{"file_format_version": "1.0.0", "ICD": {"library_path": "$cache/libvk_swiftshader.so", "api_version": "1.3.0"}}
JSON
mv "$work/icd.json" "$manifest"
echo "$manifest"
