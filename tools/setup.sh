#!/usr/bin/env bash
# Installs what tools/packages.txt lists and the system lacks. All messages go to stderr.
# usage: tools/setup.sh [--test] [--compilers] [--no-install]
#   --test        also the packages that only the tests need
#   --compilers   also those that tools/offline_compilers.sh builds with
#   --no-install  only say what is needed and missing; exit status 1 if anything is
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
  echo "setup: error: $1" >&2
  exit 1
}

sections='to build|to run'
install=yes
for argument in "$@"; do
  case $argument in
    --test) sections+='|to test' ;;
    --compilers) sections+='|to compile for GPUs' ;;
    --no-install) install=no ;;
    *) echo "usage: tools/setup.sh [--test] [--compilers] [--no-install]" >&2; exit 2 ;;
  esac
done

mapfile -t needed < <(awk -v want="^# ($sections)\$" \
  '/^# to /{on = $0 ~ want; next} on && NF && !/^#/{print $1}' tools/packages.txt)

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "setup: no apt-get here; the names of what is needed on Debian: ${needed[*]}" >&2
  for tool in c++ cmake ninja glslangValidator; do
    command -v "$tool" >/dev/null || fail "$tool not found; install it and run this again"
  done
  exit 0
fi

# dpkg-query fails when it knows nothing of a package: that is an answer here, not an error.
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${needed[@]}" 2>/dev/null |
  sed -n 's/^installed //p') || :
missing=()
for package in "${needed[@]}"; do
  grep -qxF "$package" <<<"$installed" || missing+=("$package")
done

echo "setup: needed: ${needed[*]}" >&2
if ((${#missing[@]} == 0)); then
  echo "setup: all installed" >&2
  exit 0
fi
echo "setup: missing: ${missing[*]}" >&2
[[ $install == yes ]] || exit 1

as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null || fail "neither root nor sudo; install the missing packages first"
  as_root=(sudo)
fi
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 -o Dpkg::Use-Pty=0)
"${apt[@]}" update >&2
"${apt[@]}" install -y --no-install-recommends "${missing[@]}" >&2 </dev/null
