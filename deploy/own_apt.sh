# Sourced: an apt with lists of its own, so that source packages and other architectures can be
# fetched while the system's lists and architectures stay as they are.
#
#   own_apt_begin FOLDER [ARCHITECTURE]   takes the machine's own Debian 12 archive, and its lists
#   own_apt WORD…                         apt-get in FOLDER; what it downloads is there

own_apt_begin() {
  own_apt_folder=$1 own_apt_architecture=${2:-$(dpkg --print-architecture)}
  mkdir -p "$own_apt_folder/lists/partial" "$own_apt_folder/archives/partial"
  : >"$own_apt_folder/status"
  local archive keys
  archive=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Identifier: Packages' \
    'Origin: Debian' 'Codename: bookworm' 'Component: main' | head -n 1)
  [ -n "$archive" ] || { echo "error: apt knows no Debian 12 archive; run apt-get update" >&2; exit 1; }
  keys='signed-by=/usr/share/keyrings/debian-archive-keyring.gpg'
  printf '%s\n' "deb-src [$keys] $archive main" \
    "deb [arch=$own_apt_architecture $keys] $archive main" >"$own_apt_folder/sources.list"
  own_apt update
}

own_apt() {
  (cd "$own_apt_folder" && apt-get -q -o Dir::Etc::sourcelist="$own_apt_folder/sources.list" \
    -o Dir::Etc::sourceparts=- -o Dir::State::lists="$own_apt_folder/lists" \
    -o Dir::State::status="$own_apt_folder/status" -o Dir::Cache="$own_apt_folder" \
    -o "APT::Architecture=$own_apt_architecture" -o "APT::Architectures=$own_apt_architecture" \
    -o Acquire::Languages=none -o APT::Sandbox::User=root "$@")
}
