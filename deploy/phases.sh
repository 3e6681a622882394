# The phases of test.sh, sourced: which ran, and how long each took. Needs `say` of setup.sh.
began=$SECONDS
summary=()
failed=()
phase_status=0

# phase NAME FUNCTION: in a subshell, so that its end ends only the phase.
phase() {
  local name=$1 function=$2 start=$SECONDS status=0
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

# Says what each phase came to; 1 if one failed.
end_phases() {
  printf '%s\n' "${summary[@]}"
  say "total $((SECONDS - began)) s"
  if [ ${#failed[@]} -gt 0 ]; then
    say "FAILED: ${failed[*]}"
    return 1
  fi
}
