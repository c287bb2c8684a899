#!/usr/bin/env bash
# GPU compilers without GPUs: the drivers of tools/new_drivers.sh on devices that Mesa's shims make up, in the cache folder.
# Nothing is executed: kernels compile, host code sets up and records under that device's limits, and waits never end.
# Prints the folder, which has:
#   gpu CHIP PROGRAM ARGS...   the program on that chip alone, in capitals or not; PROGRAM is an ELF file
#     AMD     polaris10 polaris12 vega10 vega20 raven renoir navi10 navi14 navi21 navi22 navi23 navi24 vangogh navi31 navi32
#             navi33 phoenix gfx1150 gfx1151 gfx1200 gfx1201
#     Intel   skl kbl icl tgl rkl adl dg2 mtl arl lnl bmg ptl
#     Adreno  adreno618 adreno630 adreno660 adreno730 adreno740 adreno750
#     NVIDIA  gm107 gm204 gp100 gp104 gv100 tu102 tu116 ga100 ga102 ga106 gh100 ad102 ad107 gb100 gb202 gb206
#   chips.txt                  those that CI compiles for, one a line
# The shims are built once from Debian 13's Mesa source (about a minute), patched with the chips that it has not.
# usage: tools/offline_compilers.sh [--refresh] [SUITE=forky]
# Exit status 1, with the reason on stderr, where they can't be had.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

drivers=$("$here/new_drivers.sh" "$@") || exit 1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rondo/drivers
folder=$cache/compilers-$(basename "$drivers")
source_suite=trixie
# Built again where the patch or this script changes.
key=$(cat "$here/shims.patch" "${BASH_SOURCE[0]}" | sha256sum | cut -c1-16)

skip() {
  echo "offline_compilers: $1" >&2
  exit 1
}

build_shims() { # INTO
  local into=$1 build=$1/build mesa source file
  for tool in gcc patch xz ninja bison flex pkg-config; do
    command -v "$tool" >/dev/null || skip "no $tool here; tools/setup.sh --compilers installs what is needed"
  done
  /usr/bin/python3 -c 'import mako, yaml' 2>/dev/null || skip "no python3-mako or python3-yaml here; tools/setup.sh --compilers installs what is needed"
  # shellcheck source=tools/private_apt.sh
  source "$here/private_apt.sh"
  private_apt "$cache/apt" "$source_suite" || skip "the package lists of Debian $source_suite can't be had"
  mkdir -p "$build"
  cd "$apt_archives"
  rm -f mesa_* libdrm-dev_* meson_* python3-packaging_*
  apt_get source --download-only mesa >&2 || skip "Debian $source_suite can't give Mesa's source"
  apt_get download libdrm-dev meson python3-packaging >&2 || skip "Debian $source_suite can't give meson"
  for file in libdrm-dev_*.deb meson_*.deb python3-packaging_*.deb; do dpkg-deb -x "$file" "$build/root"; done
  tar xf mesa_*.orig.tar.xz -C "$build"
  cd "$build"
  mesa=$(echo "$build"/mesa-*) source=$mesa/src
  (cd "$mesa" && patch -p1 -N <"$here/shims.patch" >&2)

  local defines=(-D_GNU_SOURCE -DNDEBUG -DHAVE_PTHREAD -DHAVE_MEMFD_CREATE=1 -DHAVE_STRUCT_TIMESPEC -DHAVE_TIMESPEC_GET -DHAVE___BUILTIN_EXPECT
    -DHAVE_ENDIAN_H -DHAVE_FUNC_ATTRIBUTE_PACKED -DUTIL_ARCH_LITTLE_ENDIAN=1 -DUTIL_ARCH_BIG_ENDIAN=0 -DHAVE_SECURE_GETENV
    -DHAVE_PROGRAM_INVOCATION_NAME -DHAVE_DLFCN_H -DHAVE_REALLOCARRAY -DHAVE_UNISTD_H)
  local includes=(-I"$source" -I"$mesa/include" -I"$mesa/include/drm-uapi" -I"$build/root/usr/include" -I"$build/root/usr/include/libdrm"
    -I"$source/amd" -I"$source/nouveau" -I"$source/gallium/include" -I"$source/mesa")
  local shared=("$source/drm-shim/device.c" "$source/drm-shim/drm_shim.c" "$source/c11/impl/threads_posix.c") util
  for util in hash_table set ralloc os_misc simple_mtx log u_debug u_call_once anon_file vma u_process os_time os_file memstream; do
    shared+=("$source/util/$util.c")
  done
  compile() { # NAME SOURCES...
    gcc -O2 -w -fPIC -shared -s -fvisibility=hidden -ffunction-sections -fdata-sections -Wl,--gc-sections -Wl,-z,defs \
      "${defines[@]}" "${includes[@]}" "${@:2}" "${shared[@]}" -o "$into/$1.so"
  }
  compile amdgpu "$source/amd/drm-shim/amdgpu_noop_drm_shim.c" "$source/amd/drm-shim/amdgpu_devices.c"
  compile nouveau "$source/nouveau/drm-shim/nouveau_noop.c"
  compile msm "$source/freedreno/drm-shim/freedreno_noop.c"
  # Intel's knows its chips by tables that Mesa's own build generates.
  export PATH=/usr/bin:/bin PYTHONPATH=$build/root/usr/lib/python3/dist-packages
  { /usr/bin/python3 "$build/root/usr/bin/meson" setup intel "$mesa" --buildtype=release -Db_ndebug=true -Dgallium-drivers= -Dvulkan-drivers= -Dplatforms= \
    -Dglx=disabled -Degl=disabled -Dgbm=disabled -Dopengl=false -Dgles1=disabled -Dgles2=disabled -Dllvm=disabled -Dglvnd=disabled \
    -Dzstd=disabled -Dvalgrind=disabled -Dlibunwind=disabled -Dvideo-codecs= -Dshader-cache=disabled -Dbuild-tests=false -Dtools=drm-shim,intel &&
    ninja -C intel src/intel/tools/libintel_noop_drm_shim.so; } >"$into/intel.log" 2>&1 || skip "Intel's shim can't be built; see $into/intel.log"
  strip -o "$into/intel.so" intel/src/intel/tools/libintel_noop_drm_shim.so
  rm -rf "$build"
}

shims=$cache/shims-$key
if [[ ! -s $shims/intel.so ]]; then
  rm -rf "$cache"/shims-*
  mkdir -p "$shims"
  (build_shims "$shims")
fi
mkdir -p "$folder"
printf '%s\n' navi21 navi31 gfx1201 tgl dg2 bmg adreno660 adreno740 tu102 ad102 gh100 gb202 >"$folder/chips.txt"
cat >"$folder/gpu" <<END
#!/bin/sh
c=\$(echo "\$1" | tr A-Z a-z); shift
case \$c in
  adreno*) export FD_GPU_ID="\${c#adreno}" SHIM="$shims/msm.so"; d=freedreno;;
  g[mpvahb][0-9]*|tu*|ad[0-9]*) export NOUVEAU_CHIPSET="\$(echo "\$c" | tr a-z A-Z)" NVK_I_WANT_A_BROKEN_VULKAN_DRIVER=1 SHIM="$shims/nouveau.so"; d=nouveau;;
  polaris*|vega*|raven*|renoir|navi*|vangogh|phoenix|gfx*) export AMDGPU_GPU_ID="\$c" SHIM="$shims/amdgpu.so"; d=radeon;;
  skl|kbl|icl|tgl|rkl|adl|dg2|mtl|arl|lnl|bmg|ptl) export INTEL_STUB_GPU_PLATFORM="\$c" INTEL_FORCE_PROBE='*' SHIM="$shims/intel.so"; d=intel;;
  *) echo "gpu: there is no chip \$c; tools/offline_compilers.sh lists them" >&2; exit 2;;
esac
exec "$drivers/run" \$d "\$@"
END
chmod +x "$folder/gpu"
echo "$folder"
