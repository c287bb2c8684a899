#!/usr/bin/env bash
# From a fresh checkout to generated text: installs what is missing, builds the command, runs the bundled model.
# usage: tools/quickstart.sh [--no-install] [TEXT]
#   --no-install  only print the packages it needs; exit status 1 if one is missing
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

while [[ ${1-} == -* ]]; do
  case $1 in
    --no-install) exec tools/setup.sh --no-install ;;
    --) shift; break ;;
    *) echo "usage: tools/quickstart.sh [--no-install] [TEXT]" >&2; exit 2 ;;
  esac
  shift
done
text=${1:-And Jesus answered}

tools/setup.sh
if [[ ! -e build/build.ninja || CMakePresets.json -nt build/build.ninja ]]; then
  cmake --preset release >&2
fi
# A path, because the library is a target called rondo too.
cmake --build build --target bin/rondo >&2

# The text goes to stdout; the device and the speed go to stderr.
exec build/bin/rondo generate -m samples/models/kjv-q8_0.gguf -p "$text" -n 64 --temp 0
