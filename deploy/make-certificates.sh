#!/usr/bin/env bash
# Certificates for a collector that other machines reach, and for those who connect to it.
#
#   make-certificates.sh DIR server HOST...   DIR/server.pem and .key, for these names and addresses
#   make-certificates.sh DIR client NAME...   DIR/NAME.pem and .key, for each
#
# Both are signed by DIR/ca.pem, which is made the first time. ca.pem is what all others need;
# ca.key signs new ones and is best kept elsewhere. DAYS (default 825) is how long they hold.
# What is there is never replaced: remove it first.
set -euo pipefail

usage() {
  sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

(($# >= 3)) || usage
directory=$1 kind=$2
shift 2
days=${DAYS:-825}
umask 077
mkdir -p "$directory"
cd "$directory"

fail() {
  echo "make-certificates.sh: $*" >&2
  exit 1
}

new_key() {
  [[ ! -e $1 ]] || fail "$directory/$1 is there; remove it, or choose another name"
  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"
}

# sign NAME SUBJECT EXTENSIONS
sign() {
  new_key "$1.key"
  openssl req -new -key "$1.key" -subj "/CN=$2" |
    openssl x509 -req -CA ca.pem -CAkey ca.key -set_serial "0x$(openssl rand -hex 16)" \
      -days "$days" -sha256 -extfile <(printf '%b' "$3") -out "$1.pem" 2>/dev/null ||
    fail "openssl could not sign $1.pem"
  chmod 644 "$1.pem"
  echo "$directory/$1.pem"
}

if [[ ! -e ca.pem ]]; then
  new_key ca.key
  openssl req -x509 -new -key ca.key -sha256 -days 3650 -subj "/CN=collectord CA" \
    -addext "basicConstraints=critical,CA:TRUE,pathlen:0" \
    -addext "keyUsage=critical,keyCertSign,cRLSign" -out ca.pem
  chmod 644 ca.pem
  echo "$directory/ca.pem"
fi
[[ -e ca.key ]] || fail "$directory/ca.key is not there: nothing can be signed"

case $kind in
  server)
    names=
    for host in "$@"; do
      if [[ $host =~ ^[0-9.]+$ || $host == *:* ]]; then
        names+=",IP:$host"
      else
        names+=",DNS:$host"
      fi
    done
    sign server "$1" "subjectAltName=${names#,}\nextendedKeyUsage=serverAuth\n"
    ;;
  client)
    for name in "$@"; do
      [[ $name =~ ^[A-Za-z0-9_.-]+$ && $name != server && $name != ca ]] ||
        fail "\"$name\" is no name for a client: letters, digits, _ . and -"
      sign "$name" "$name" "extendedKeyUsage=clientAuth\n"
    done
    ;;
  *) usage ;;
esac
