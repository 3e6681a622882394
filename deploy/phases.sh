# The phases of test.sh, sourced: which ran, how long each took, which did not run. Needs `say` of
# setup.sh. COLLECT_TEST_MINUTES and COLLECT_TEST_MAY_SKIP are test.sh's.
minutes=${COLLECT_TEST_MINUTES:-25}
began=$SECONDS
summary=()
failed=()
phase_status=0

# phase NAME LEAST_SECONDS FUNCTION: runs it unless less time than that is left; 0 runs however late it
# is. In a subshell, so that its end ends only the phase.
phase() {
  local name=$1 least=$2 function=$3 start=$SECONDS left status=0
  left=$((minutes * 60 - (SECONDS - began)))
  if [ "$least" -gt 0 ] && [ "$left" -lt "$least" ]; then
    say "== $name: SKIPPED, $left s left of $minutes min (COLLECT_TEST_MINUTES=60 runs everything)"
    summary+=("$(printf '%-34s skipped, no time left' "$name")")
    if [ "${COLLECT_TEST_MAY_SKIP:-no}" != yes ]; then failed+=("$name (did not run)"); fi
    return
  fi
  say "== $name"
  set +e
  (set -e; "$function")
  status=$?
  set -e
  if [ $status != 0 ]; then failed+=("$name"); fi
  phase_status=$status
  summary+=("$(printf '%-34s %4d s  %s' "$name" $((SECONDS - start)) \
    "$([ $status = 0 ] && echo passed || echo FAILED)")")
}

# Says what each phase came to; 1 if one failed, or did not run and had to.
end_phases() {
  printf '%s\n' "${summary[@]}"
  say "total $((SECONDS - began)) s"
  if [ ${#failed[@]} -gt 0 ]; then
    say "FAILED: ${failed[*]}"
    return 1
  fi
}
