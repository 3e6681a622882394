#!/bin/bash
# Completion as a shell asks for it: lines and what they are completed to, with a collector that has
# a session, with none, and with someone at its address who never answers.
#   completion_test.sh BUILD_DIR TRACED_PROGRAM
set -u
build_dir=$1 program=$2
bin=$build_dir/bin completion=$build_dir/deploy/completion
scratch=$(mktemp -d)
daemon='' mute=''
trap 'kill $daemon $mute 2> /dev/null; rm -rf "$scratch"' EXIT
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

cd "$scratch" && mkdir -p folder/below && touch file_one.rtc
export PATH=$bin:$PATH HOME=$scratch
unset COLLECT_CONTROL
# shellcheck source=/dev/null
. "$completion/bash/collectctl" && . "$completion/bash/collectord" || exit 1

# complete_line LINE: the candidates, sorted, in one line.
complete_line() {
  COMP_LINE=$1 COMP_POINT=${#1}
  read -ra COMP_WORDS <<< "$1"
  [[ $1 == *' ' ]] && COMP_WORDS+=('')
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  COMPREPLY=()
  "_${COMP_WORDS[0]}" 2> "$scratch/errors"
  [ -s "$scratch/errors" ] && fail "\"$1\" says $(cat "$scratch/errors")"
  printf '%s\n' "${COMPREPLY[@]}" | sort | paste -sd ' '
}
expect() {  # expect LINE CANDIDATES
  local got
  got=$(complete_line "$1")
  [ "$got" = "$2" ] || fail "bash: \"$1\" is completed to \"$got\", not to \"$2\""
}

expect 'collectctl det' 'detach detail'
expect 'collectctl detail ' 'start stop'
expect 'collectctl detail start --f' '--function'
expect 'collectctl --json det' 'detach detail'
expect 'collectctl --control 127.0.0.1:7711 ver' 'verify'
expect 'collectctl run --detail ' 'armed off on'
expect 'collectctl run --when-full=w' 'wait'
expect 'collectctl run --detail on --drain p' 'process'
expect 'collectctl run -- cat fi' 'file_one.rtc'
expect 'collectctl convert file_one.rtc --to wtf' 'wtf wtf-json'
expect 'collectctl convert file_one.rtc --to p' 'parquet perfetto pprof'
expect 'collectctl convert file_one.rtc -o fo' 'folder'
expect 'collectctl verify fi' 'file_one.rtc'
expect 'collectctl run -o f' 'folder'
expect 'collectctl annotate ' ''
expect 'collectctl attach ' ''
expect 'collectord --dur' '--durability'
expect 'collectord --durability ' 'fsync os'
expect 'collectord --config fi' 'file_one.rtc'
expect 'collectord --root fo' 'folder'
expect 'collectord --rtc=' 'false true'
for command in run sessions report; do
  [[ " $(complete_line 'collectctl ') " == *" $command "* ]] || fail "$command is not offered"
done

mkfifo ready
collectord --root "$scratch/root" --ingest 127.0.0.1:0 --control 127.0.0.1:0 --ready-fd 3 \
  3> ready 2> daemon.log &
daemon=$!
line=$(timeout 30 head -n 1 ready) || { cat daemon.log; exit 1; }
control=$(sed 's/.*"control":"\([^"]*\)".*/\1/' <<< "$line")
collectctl --control "$control" run -q -- "$program" > /dev/null || fail "nothing was recorded"
session=$(cd "$scratch/root" && echo session_*/pid_*)
export COLLECT_COMPLETION_SECONDS=20
expect "collectctl --control $control snapshot " "$session"
expect "collectctl --control=$control stop s" "$session"
expect "collectctl download --control $control ses" "$session"
expect "collectctl detach --control $control " '1'
COLLECT_CONTROL=$control expect 'collectctl delete session_' "$session"
expect "collectctl --control $control snapshot nothing" ''

if command -v fish > /dev/null; then
  fish_line() {
    fish --no-config -c "source $completion/fish/collectctl.fish; complete -C '$1'" |
      cut -f 1 | sort | paste -sd ' '
  }
  for pair in "detail |start stop" "det|detach detail" "run --when-full |drop overwrite wait" \
    "--control $control snapshot |$session" "verify fi|file_one.rtc" "detail start --fu|--function"; do
    got=$(fish_line "collectctl ${pair%%|*}")
    [ "$got" = "${pair#*|}" ] || fail "fish: \"${pair%%|*}\" is completed to \"$got\", not to \"${pair#*|}\""
  done
  fish --no-execute "$completion/fish/collectord.fish" || fail "fish: collectord.fish"
else
  echo "skipped: fish is missing"
fi
if command -v zsh > /dev/null; then
  zsh -n "$completion/zsh/_collectctl" && zsh -n "$completion/zsh/_collectord" || fail "zsh: syntax"
else
  echo "skipped: zsh is missing"
fi

kill "$daemon"; wait "$daemon"
daemon=''
export COLLECT_COMPLETION_SECONDS=1
expect "collectctl --control $control snapshot " ''
# Someone who takes the connection and says nothing: the bound ends it, and no one hears of it.
mkfifo port
python3 -c '
import socket, time
listener = socket.create_server(("127.0.0.1", 0))
open("port", "w").write(str(listener.getsockname()[1]))
time.sleep(600)' &
mute=$!
expect "collectctl --control 127.0.0.1:$(cat port) snapshot " ''

[ $failures = 0 ] && echo "completion does what it should"
exit $((failures > 0))
