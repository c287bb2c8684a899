# To be sourced: package lists of another Debian than the system's, without a trace in it. For users who are not root too.
# shellcheck shell=bash disable=SC2034

# private_apt FOLDER SUITE: fetches the suite's lists, from the mirror that the system uses, checked with Debian's keys. After
# it, `apt_get ARGS...` is apt-get of that suite, and $apt_archives has what it fetched.
private_apt() {
  local folder=$1/$2 suite=$2 mirror kind
  # $(SITE) is apt-get's placeholder, not the shell's.
  # shellcheck disable=SC2016
  mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | sed -n 1p) || return 1
  [[ -n $mirror ]] || return 1
  mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial"
  : >"$folder/status"
  for kind in deb deb-src; do
    echo "$kind [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
  done >"$folder/sources.list"
  apt_archives=$folder/cache/archives
  apt_options=(-qq -o Dir::Etc::SourceList="$folder/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::Etc::Preferences=/dev/null
    -o Dir::Etc::PreferencesParts=/dev/null -o Dir::State="$folder" -o Dir::State::Lists="$folder/lists" -o Dir::State::status="$folder/status"
    -o Dir::Cache="$folder/cache" -o Debug::NoLocking=1 -o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=3
    -o Dpkg::Use-Pty=0 -o APT::Update::Post-Invoke-Success::= -o APT::Update::Error-Mode=any)
  apt_get update >&2
}
apt_get() { apt-get "${apt_options[@]}" "$@"; }
