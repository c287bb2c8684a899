#!/usr/bin/env bash
# Encodes 64 texts with Rondo and with llama.cpp's Vulkan backend, one after the other on one driver: texts per second of both.
# usage: tools/compare_encoders.sh LIBDIR MODEL.gguf [TOKENS=32] [ROUNDS=3] [TEXTS OF LLAMA.CPP=16]
# LIBDIR has llama.cpp's published libraries (npm package @node-llama-cpp/linux-x64-vulkan, folder bins/linux-x64-vulkan).
# RONDO=build/bin/rondo; VK_DRIVER_FILES names the driver. tools/random_gguf.py bert makes a model.
set -euo pipefail
(($# >= 2)) || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
libraries=$1 model=$2 tokens=${3:-32} rounds=${4:-3} texts=${5:-16}
rondo=${RONDO:-build/bin/rondo}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -O2 -o "$work/encode_peer" "$here/encode_peer.c" -ldl
for ((round = 0; round < rounds; ++round)); do
  LD_LIBRARY_PATH=$libraries GGML_VK_VISIBLE_DEVICES=${GGML_VK_VISIBLE_DEVICES:-0} "$work/encode_peer" "$libraries" "$model" "$texts" "$tokens" 8 1 2>/dev/null >>"$work/peer"
  "$rondo" bench -m "$model" -p "$tokens" -r 1 -o csv >>"$work/ours"
done
python3 - "$work" "$tokens" <<'PY'
import json, statistics, sys
work, tokens = sys.argv[1], int(sys.argv[2])
peer = statistics.median(json.loads(line)["texts_per_s"] for line in open(f"{work}/peer"))
ours = {1: [], 8: []}
for line in open(f"{work}/ours"):
    fields = line.strip().split(",")
    if fields[0].startswith("en"):
        ours[int(fields[0].split()[-1])].append(float(fields[4]) / tokens)
one, eight = (statistics.median(ours[n]) for n in (1, 8))
print(f"texts of {tokens} tokens a second: llama.cpp {peer:.1f} (8 at once), rondo {one:.1f} one by one, {eight:.1f} eight at once")
print(f"rondo / llama.cpp {eight / peer:.2f}, eight at once / one by one {eight / one:.2f}")
PY
