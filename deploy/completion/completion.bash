# bash completion for @PROGRAM@, made out of its --help.

# The names that a running collector has, one a line; nothing where none answers in time. In any answer,
# a name is these characters and nothing that a shell would take for more.
_@NAME@_ask() {
  # shellcheck disable=SC2086  # one word for each option
  timeout "${COLLECT_COMPLETION_SECONDS:-1}" "${COMP_WORDS[0]}" $collector --json "$1" 2> /dev/null |
    grep -o "\"name\":\"$1/[A-Za-z0-9_./-]*" | cut -d / -f 2-
}

# Candidates of one kind for the word that is being typed.
_@NAME@_fill() {
  local kind=$1 names
  shift
  case $kind in
    words) mapfile -t COMPREPLY < <(compgen -W "$*" -- "$cur") ;;
    files) compopt -o filenames 2> /dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    directories) compopt -o filenames 2> /dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    sessions) names=$(_@NAME@_ask sessions) ;;
    agents) names=$(_@NAME@_ask agents) ;;
    targets) names=$(_@NAME@_ask sessions; _@NAME@_ask agents) ;;
    program)
      compopt -o filenames 2> /dev/null
      mapfile -t COMPREPLY < <(compgen -c -- "$cur"; compgen -f -- "$cur")
      ;;
  esac
  [ -z "${names-}" ] || mapfile -t COMPREPLY < <(compgen -W "$names" -- "$cur")
}

_@NAME@_flags() {
  case $1 in
@FLAGS@
  esac
}

# What the value of a flag is: "command flag". Fails for a flag without one.
_@NAME@_value() {
  case $1 in
@VALUES@
    *) return 1 ;;
  esac
}

_@NAME@_subcommands() {
  case $1 in
@SUBCOMMANDS@
  esac
}

# What belongs at a place: "command number", from 1.
_@NAME@_place() {
  case $1 in
@PLACES@
  esac
}

_@NAME@() {
  local cur words command=@PROGRAM@ collector='' place=0 value word i
  # Colons and equals signs part bash's own words, and addresses have both.
  read -ra words <<< "${COMP_LINE:0:COMP_POINT}"
  [[ ${COMP_LINE:0:COMP_POINT} == *[[:space:]] ]] && words+=('')
  cur=${words[-1]}
  COMPREPLY=()
  for ((i = 1; i < ${#words[@]} - 1; i++)); do
    word=${words[i]}
    if [[ $word == -- || $word != -* ]]; then
      if [[ " $(_@NAME@_subcommands "$command") " == *" $word "* ]]; then
        command+=" $word"
        continue
      fi
      # The rest belongs to the program that is run.
      if [[ $(_@NAME@_place "$command 1") == program ]]; then
        if [[ $word == -- && $i -eq $((${#words[@]} - 2)) ]]; then
          _@NAME@_fill program
        else
          _@NAME@_fill files
        fi
        return
      fi
      [[ $word == -- ]] || place=$((place + 1))
    elif [[ $word == *=* ]]; then
      case $word in @COLLECTOR_FLAGS_EQUALS@) collector+=" $word" ;; esac
    elif _@NAME@_value "$command $word" > /dev/null; then
      i=$((i + 1))
      if ((i == ${#words[@]} - 1)); then
        # shellcheck disable=SC2046  # the kind and its words
        _@NAME@_fill $(_@NAME@_value "$command $word")
        return
      fi
      case $word in @COLLECTOR_FLAGS@) collector+=" $word ${words[i]}" ;; esac
    fi
  done
  if [[ $cur == --*=* ]]; then
    value=$(_@NAME@_value "$command ${cur%%=*}") || return 0
    cur=${cur#*=}
    # shellcheck disable=SC2086
    _@NAME@_fill $value
  elif [[ $cur == -* ]]; then
    # shellcheck disable=SC2046
    _@NAME@_fill words $(_@NAME@_flags "$command")
  elif [[ -n $(_@NAME@_subcommands "$command") ]]; then
    # shellcheck disable=SC2046
    _@NAME@_fill words $(_@NAME@_subcommands "$command")
  else
    # shellcheck disable=SC2046
    _@NAME@_fill $(_@NAME@_place "$command $((place + 1))")
  fi
}

complete -F _@NAME@ @PROGRAM@
