# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Completion of xio-info, xio-tester, xio-perf, xio-verify and xiorun for bash. The words to complete are read from the
# tool's own --help, so that this never lags behind it.

# _xio_help COMMAND...: its help with one line for each option, the text that was folded under it included.
_xio_help() {
  "$@" --help 2>/dev/null </dev/null | awk '
    /^ {20}/ {line = line " " substr($0, 21); next}
    {if (line != "") print line; line = $0}
    END {if (line != "") print line}'
}

# The options in a help.
_xio_flags() {
  awk '/^ +-/ {n = split($1, names, ","); for (i = 1; i <= n; ++i) print names[i]}' <<<"$1"
}

# The words that a help lists below "Subcommands:" or "Tests:".
_xio_words() {
  awk '/^(Subcommands|Tests):/ {on = 1; next} on && /^  [a-z]/ {print $1; next} {on = 0}' <<<"$1"
}

# The line of one option in a help.
_xio_line() {
  awk -v flag="$2" '/^ +-/ {n = split($1, names, ","); for (i = 1; i <= n; ++i) if (names[i] == flag) {print; exit}}' <<<"$1"
}

# Whether an option takes a value: its type stands one blank behind it.
_xio_takes_value() {
  local line
  line=$(_xio_line "$1" "$2")
  [[ $line =~ ^\ +-[^\ ]*\ [A-Z] ]]
}

# COMPREPLY from the words in $1 that begin with $2; before a comma in $2 all stays as it is.
_xio_reply() {
  local words=$1 cur=$2 done=
  if [[ ${3-} = list && $cur = *,* ]]; then
    done=${cur%,*},
    cur=${cur##*,}
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -P "$done" -- "$cur")
}

# Lists the values that may follow the option $2 of the help $1.
_xio_value() {
  local help=$1 flag=$2 cur=$3 line
  line=$(_xio_line "$help" "$flag")
  if [[ $line =~ \(([A-Za-z0-9_-]+(\|[A-Za-z0-9_-]+)+)\) ]]; then
    local choices=${BASH_REMATCH[1]} kind=one
    if [[ $line = *'several with commas'* ]]; then kind=list; fi
    _xio_reply "${choices//|/ }" "$cur" $kind
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
  fi
}

_xio_tool() {
  local tool cur=$2 prev=$3 help word i
  COMPREPLY=()
  tool=$(type -P -- "${COMP_WORDS[0]/#\~/$HOME}") || return 0
  help=$(_xio_help "$tool")
  # The subcommands on the line add their own options.
  local path=("$tool") words
  words=$(_xio_words "$help")
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if [[ ${tool##*/} = xio-perf || $word = -* || $'\n'$words$'\n' != *$'\n'"$word"$'\n'* ]]; then continue; fi
    path+=("$word")
    local more
    more=$(_xio_help "${path[@]}")
    words=$(_xio_words "$more")
    help=$more$'\n'$help
  done
  if [[ $prev = -* ]] && _xio_takes_value "$help" "$prev"; then
    _xio_value "$help" "$prev" "$cur"
  elif [[ $cur = -* ]]; then
    _xio_reply "$(_xio_flags "$help")" "$cur"
  elif [[ ${tool##*/} = xio-perf ]]; then
    _xio_reply "$words" "$cur" list
  else
    _xio_reply "$words" "$cur"
  fi
}

# Options first, then a program and its own arguments.
_xio_run() {
  local tool cur=$2 prev=$3 help i
  COMPREPLY=()
  tool=$(type -P -- "${COMP_WORDS[0]/#\~/$HOME}") || return 0
  help=$(_xio_help "$tool")
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${COMP_WORDS[i]} in
      --) break ;;
      -*) if _xio_takes_value "$help" "${COMP_WORDS[i]}"; then i=$((i + 1)); fi ;;
      *) break ;;
    esac
  done
  if ((i < COMP_CWORD)) && [[ ${COMP_WORDS[i]} != -- ]]; then
    # Of the program that runs: its own completion if it is one of ours.
    case ${COMP_WORDS[i]##*/} in
      xio-*)
        COMP_WORDS=("${COMP_WORDS[@]:i}")
        COMP_CWORD=$((COMP_CWORD - i))
        _xio_tool "${COMP_WORDS[0]}" "$cur" "$prev"
        ;;
      *) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    esac
  elif ((i == COMP_CWORD)) && [[ $cur = -* ]]; then
    _xio_reply "$(_xio_flags "$help")" "$cur"
  elif ((i > COMP_CWORD)); then
    _xio_value "$help" "$prev" "$cur"
  else
    mapfile -t COMPREPLY < <(compgen -c -- "$cur")
  fi
}

complete -o filenames -F _xio_tool xio-info xio-tester xio-perf xio-verify
complete -o filenames -F _xio_run xiorun
