#!/bin/sh
# committed_texts.sh BUILD_DIR: writes the files of this tree again that follow from the code: what
# commands print, what exports contain, the reference pages of the guide, the image of the control
# plane. `cmake --build BUILD_DIR --target committed-texts` builds what it needs and runs it. Tests
# compare these files with the code: look at the differences before you commit them.
set -eu
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
: "${COLLECT_REFERENCE:=$PWD/../shared/reference}"
export COLLECT_REFERENCE

# The tests that write, and the variable that lets them.
run() {
  program=$1 variable=$2 filter=$3
  env "$variable=1" "$build/bin/$program" --gtest_brief=1 --gtest_filter="$filter" || {
    echo "$program: its other expectations do not hold; the texts are written" >&2
    failed=1
  }
}
failed=0
run ctl_words_test COLLECT_WRITE_WORDS 'WordsTest*:BusyWords*'
run ctl_program_test COLLECT_WRITE_WORDS 'CommandWords*:RunWords*:OnlineWords*:TerminalWords*'
run ctl_export_test COLLECT_WRITE_EXPORTS '*'
"$build/bin/collectord" --help >tests/daemon/expected/help
"$build/bin/collectord" --root /traces --print-config >tests/daemon/expected/settings
python3 -B deploy/guide/make_reference.py "$build/bin/collectord" "$build/bin/collectctl" \
  deploy/collectord.toml

buf=${COLLECT_BUF:-$(command -v buf || ls build/tools/buf/node_modules/.bin/buf 2>/dev/null || true)}
if [ -n "$buf" ]; then
  "$buf" build proto/control --exclude-source-info -o proto/control/v1.binpb
else
  echo "buf is not here (deploy/test.sh installs it): proto/control/v1.binpb is not written"
fi
git status --short -- tests/daemon/expected tests/daemon/ctl/words/expected tests/daemon/ctl/export/expected \
  deploy/guide proto/control/v1.binpb || true
exit $failed
