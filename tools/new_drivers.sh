#!/usr/bin/env bash
# Newer Vulkan drivers beside the system's: Mesa (lavapipe, RADV, ANV, NVK, turnip), loader, validation layer, glslang and SPIR-V
# tools of a newer Debian, unpacked into the cache folder with a C library of their own. Needs no root, installs nothing.
# Prints the folder, which has:
#   run DRIVER PROGRAM ARGS...  the program with that driver (lvp, radeon, intel, nouveau, freedreno ...) alone, and with the
#                               newer loader and layers; PROGRAM is an ELF file. SHIM=FILE is loaded before all others.
#   tool NAME ARGS...           a program of the newer Debian: glslang, spirv-val, spirv-dis, vulkaninfo ...
#   mesa.txt, packages.txt      Mesa's version; the packages with their hashes
# usage: tools/new_drivers.sh [--refresh] [SUITE=forky]
#   --refresh  look for newer packages; without it a folder that is there is used as it is
# Exit status 1, with the reason on stderr, where they can't be had.
set -euo pipefail

refresh=no
if [[ ${1-} == --refresh ]]; then refresh=yes; shift; fi
[[ $# -le 1 && ${1-forky} =~ ^[a-z]+$ ]] || { echo "usage: tools/new_drivers.sh [--refresh] [SUITE]" >&2; exit 2; }
suite=${1-forky}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rondo/drivers
packages=(mesa-vulkan-drivers libvulkan1 vulkan-tools vulkan-validationlayers glslang-tools spirv-tools)
headers=(libvulkan-dev spirv-headers)  # by themselves: they need nothing that runs

skip() {
  echo "new_drivers: $1" >&2
  exit 1
}
[[ $(uname -m) == x86_64 ]] || skip "for x86-64 only, and this is $(uname -m)"
for tool in apt-get dpkg-deb sha256sum; do
  command -v "$tool" >/dev/null || skip "no $tool here"
done
current=$cache/$suite
if [[ $refresh == no && -s $current/mesa.txt ]]; then
  echo "$current"
  exit 0
fi

# A package list of that suite, apart from the system's.
# shellcheck source=tools/private_apt.sh
source "$(dirname "${BASH_SOURCE[0]}")/private_apt.sh"
mkdir -p "$cache"
private_apt "$cache/apt" "$suite" || skip "the package lists of Debian $suite can't be had"
# What is unpacked is kept by the hashes of its packages. apt names only what its archive lacks, so it is shown an empty one.
mkdir -p "$cache/none/partial"
list=$( (apt_get -o Dir::Cache::archives="$cache/none" -y --no-install-recommends --print-uris install "${packages[@]}"
  cd "$cache/none" && apt_get --print-uris download "${headers[@]}") | awk '{print $2}' | sort -u) || skip "Debian $suite does not have ${packages[*]} ${headers[*]}"
apt_get -y --no-install-recommends --download-only install "${packages[@]}" >&2 || skip "Debian $suite can't give ${packages[*]}"
(cd "$apt_archives" && apt_get download "${headers[@]}" >&2) || skip "Debian $suite can't give ${headers[*]}"
hashes=$(cd "$apt_archives" && xargs sha256sum <<<"$list")
folder=$cache/$suite-$(sha256sum <<<"$hashes" | cut -c1-16)
if [[ ! -s $folder/mesa.txt ]]; then
  rm -rf "$folder"
  root=$folder/root libraries=$folder/root/usr/lib/x86_64-linux-gnu
  mkdir -p "$root" "$folder/icd"
  while read -r _ file; do dpkg-deb -x "$apt_archives/$file" "$root"; done <<<"$hashes"
  printf '%s\n' "$hashes" >"$folder/packages.txt"
  for manifest in "$root"/usr/share/vulkan/icd.d/*_icd*.json; do
    name=$(basename "$manifest")
    sed -E 's#"library_path": *"(.*/)?([^"/]+)"#"library_path": "'"$libraries"'/\2"#' "$manifest" >"$folder/icd/${name%%_icd*}.json"
  done
  cat >"$folder/tool" <<END
#!/bin/sh
n=\$1; shift
exec "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" "$root/usr/bin/\$n" "\$@"
END
  cat >"$folder/run" <<END
#!/bin/sh
d=\$1; shift
[ -e "$folder/icd/\$d.json" ] || { echo "run: there is no driver \$d; there are: \$(cd "$folder/icd" && ls | sed 's/\.json\$//' | tr '\n' ' ')" >&2; exit 2; }
export VK_DRIVER_FILES="$folder/icd/\$d.json" VK_LAYER_PATH="$root/usr/share/vulkan/explicit_layer.d" VK_IMPLICIT_LAYER_PATH=/nonexistent
export DRIRC_CONFIGDIR="$root/usr/share/drirc.d" MESA_SHADER_CACHE_DISABLE="\${MESA_SHADER_CACHE_DISABLE-1}"
unset VK_ICD_FILENAMES
exec "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" \${SHIM:+--preload "\$SHIM"} "\$@"
END
  chmod +x "$folder/tool" "$folder/run"
  # Last, because this file says that all is there.
  mesa=$("$folder/run" lvp "$root/usr/bin/vulkaninfo" --summary 2>/dev/null | sed -n 's/.*driverInfo *= *Mesa \([0-9.]*\).*/\1/p') || :
  [[ -n $mesa ]] || skip "what was unpacked into $folder does not run"
  echo "$mesa" >"$folder/mesa.txt"
fi
for package in "$apt_archives"/*.deb; do
  if ! grep -qF "  $(basename "$package")" "$folder/packages.txt"; then rm "$package"; fi
done
for old in "$cache/$suite"-*; do
  if [[ $old != "$folder" ]]; then rm -rf "$old"; fi
done
ln -sfn "$folder" "$current"
echo "$current"
