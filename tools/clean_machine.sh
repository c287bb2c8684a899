#!/usr/bin/env bash
# Proves that a bare machine works: makes an empty Debian, copies a clone of HEAD into it and runs tools/quickstart.sh
# there, twice, with the time taken. Needs root and the package debootstrap. For developers.
# usage: tools/clean_machine.sh [SUITE=bookworm]
# The bare system is kept in the cache folder; delete that folder to make it afresh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

suite=${1:-bookworm}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rondo/clean_machine
((EUID == 0)) || { echo "clean_machine: error: needs root" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "clean_machine: error: install debootstrap first" >&2; exit 1; }

mkdir -p "$cache"
if [[ ! -d $cache/$suite ]]; then
  # $(SITE) is apt-get's placeholder, not the shell's.
  # shellcheck disable=SC2016
  mirror=$(apt-get indextargets --format '$(CODENAME) $(SITE)' 'Created-By: Packages' |
    awk -v suite="$suite" '$1 == suite && !found {found = 1; print $2}')
  [[ -n $mirror ]] || { echo "clean_machine: error: apt's sources hold no $suite" >&2; exit 1; }
  rm -rf "$cache/unfinished"
  debootstrap --variant=minbase "$suite" "$cache/unfinished" "$mirror"
  mv "$cache/unfinished" "$cache/$suite"
fi

root=$(mktemp -d "$cache/run.XXXXXX")
clean_up() {
  if mountpoint -q "$root/proc"; then umount "$root/proc"; fi
  rm -rf --one-file-system "$root"
}
trap clean_up EXIT
cp -a "$cache/$suite/." "$root/"

# What this machine needs to reach its package mirror: apt's sources, certificates, names, proxies.
for path in /etc/apt /etc/ssl /usr/share/keyrings /usr/share/ca-certificates /usr/local/share/ca-certificates \
  /etc/hosts /etc/resolv.conf; do
  [[ -e $path ]] || continue
  rm -rf "${root:?}$path"
  mkdir -p "$(dirname "$root$path")"
  # Links are followed at the top only: resolv.conf often points outside.
  cp -aH "$path" "$root$path"
done
proxies=()
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY SSL_CERT_FILE; do
  if [[ -n ${!name-} ]]; then proxies+=("$name=${!name}"); fi
done

git clone --quiet --no-hardlinks . "$root/rondo"
mount -t proc proc "$root/proc" || echo "clean_machine: going on without /proc"

run() {
  local begin=$SECONDS
  chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LANG=C.UTF-8 "${proxies[@]}" \
    /rondo/tools/quickstart.sh </dev/null
  echo "clean_machine: $1 took $((SECONDS - begin)) s"
}
run "the first call"
run "the second call"
