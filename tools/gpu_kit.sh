#!/usr/bin/env bash
# Makes a kit that measures any GPU: one folder with the command (no library of ours or of C++ beside it), a model and run.sh, which
# takes ten minutes and no network. What comes back belongs into docs/measurements.
# usage: tools/gpu_kit.sh OUT.tar.gz
set -euo pipefail
[[ $# -eq 1 && $1 == *.tar.gz ]] || { echo "usage: tools/gpu_kit.sh OUT.tar.gz" >&2; exit 2; }
mkdir -p "$(dirname "$1")"
out=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/setup.sh
# The C library stays the system's, as drivers are loaded by it: the kit runs where it is as new as here.
cmake -S . -B build/kit -G Ninja -DCMAKE_BUILD_TYPE=Release -DRONDO_PACKED_RELOCATIONS=OFF "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG" \
  "-DCMAKE_EXE_LINKER_FLAGS=-static-libstdc++ -static-libgcc -s" >/dev/null
cmake --build build/kit --target rondo_command
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
kit=$work/rondo-kit
mkdir -p "$kit/models"
cp build/kit/bin/rondo tools/kit/run.sh tools/kit/README.txt "$kit"
cp samples/models/kjv-q8_0.gguf "$kit/models"
cp LICENSE "$kit"
git describe --always --dirty --abbrev=12 >"$kit/commit.txt" 2>/dev/null || echo unknown >"$kit/commit.txt"
tar czf "$out" -C "$work" --owner=0 --group=0 rondo-kit
echo "$out: $(du -h "$out" | cut -f1), $(objdump -T "$kit/rondo" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -1) or newer"
