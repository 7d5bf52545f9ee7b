#!/bin/bash
# SPDX-License-Identifier: MIT
# What xio-info prints, and what it refuses.
set -uo pipefail
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${srcdir:?}" "${builddir:?}" "${gpu:?}"
# shellcheck source=tests/tools/said.sh
. "$srcdir/tests/tools/said.sh"
info=$builddir/xio-info
if [ ! -x "$info" ]; then skip 'this build has no xio-info: it wants nlohmann-json'; fi
unset "${!XIO_@}" 2>/dev/null

# status EXPECTED NAME=VALUE... -- ARGUMENT...: runs it; $out is all that it printed.
status() {
  local expected=$1 got settings=()
  shift
  while [ "$1" != -- ]; do settings+=("$1"); shift; done
  shift
  out=$(env "${settings[@]}" timeout -k 5 60 "$info" "$@" 2>&1)
  got=$?
  checks=$((checks + 1))
  [ "$got" = "$expected" ] || wrong "status $got and not $expected: ${settings[*]} xio-info $*"
}
# A value of the JSON, by keys.
value() {
  python3 -c '
import json, sys
at = json.load(sys.stdin)
for key in sys.argv[1:]: at = at[int(key) if isinstance(at, list) else key]
print(at)' "$@" <<<"$out"
}
equals() {
  local expected=$1 got
  shift
  got=$(value "$@" 2>&1)
  checks=$((checks + 1))
  [ "$got" = "$expected" ] || wrong "$*: '$got' and not '$expected'"
}

# --- What is here ---
status 0 --
says "^Platform"
says "platform +$gpu\$"
says '^GPU 0$'
says 'compute_units +[1-9]'
says "^Memory: symmetric heap, and kinds"
says 'heap_bytes +67108864'
says "^Host data path"
says "^Copy engines"
if [ "$gpu" = host ]; then
  says "HOST_PLAIN +yes"
  says "DEVICE_UNCACHED +no \(.*DEVICE_FINE_GRAINED"
  says "way +none"
  says "reason .*has no host data path"
  if has XIO_ENABLE_MODEL; then says "backend +model gfx90a"; else says 'backend +none \(.*no software engine'; fi
fi

# --- What it logs ---
status 0 XIO_FLAVOUR=1 --
says 'XIO_FLAVOUR is not a variable of XIO'
status 0 XIO_FLAVOUR=1 XIO_LOG_LEVEL=error --
checks=$((checks + 1))
if [[ $out == *XIO_FLAVOUR* ]]; then wrong 'XIO_LOG_LEVEL=error silences the warning'; fi

# --- For programs ---
if command -v python3 >/dev/null; then
  status 0 -- --json
  equals "$gpu" platform platform
  equals 67108864 memory heap_bytes
  checks=$((checks + 1))
  [ "$(value gpu0 memory_bytes)" -gt 0 ] || wrong 'GPU 0 has no memory'
  status 0 XIO_HEAP_SIZE=2M -- --json
  equals 2097152 memory heap_bytes
  if [ "$gpu" = host ]; then
    equals none hdp way
    if has XIO_ENABLE_MODEL; then equals 'SDMA 4.4' sdma generation; else equals none sdma backend; fi
    equals True memory DEVICE_FINE_GRAINED
    for purpose in rings completions flags heap; do equals pages memory $purpose; done
    for way in device host sdma rdma-read readback; do
      status 0 XIO_HDP=$way -- --json
      equals "$way" hdp asked
      equals "$way" hdp way
    done
    status 0 XIO_HDP=rdma-read -- --json
    equals device hdp way_for_storage
    if has XIO_ENABLE_MODEL; then
      status 0 XIO_MODEL_GPU=gfx1201 -- --json
      equals 'SDMA 7' sdma generation
    fi
    # A way that cannot be is reported, and xio-info goes on.
    status 0 XIO_HDP=sdma XIO_MODEL_GPU=gfx1010 -- --json
    equals error hdp way
    says 'XIO_HDP=sdma cannot be'
  fi
  # Every variable of the table, and what is set now, but for keys.
  status 0 XIO_HDP=host XIO_TCP_KEY=mysecretmysecret -- --env --json
  rows=$(grep -c '^XIO_[A-Z]*_OPTION(' "$srcdir/src/base/options.def")
  checks=$((checks + 1))
  [ "$(value | python3 -c 'import ast, sys; print(len(ast.literal_eval(sys.stdin.read())))')" = "$rows" ] ||
    wrong "--env does not list $rows variables"
  says '"variable": "XIO_HDP"'
  says '"group": "transport"'
  says '"now": "host"'
  says '"now": "set"'
  checks=$((checks + 1))
  ! grep -q mysecret <<<"$out" || wrong "a key was printed"
fi

# --- The environment ---
status 0 XIO_TIMEOUT_MS=77 -- --env
says '^XIO_HDP \(auto\|none\|device\|host\|sdma\|rdma-read\|readback; default auto\)'
says '^XIO_MEMORY_MODE \(auto, or number 0\.\.15; default auto\)'
says '^XIO_TIMEOUT_MS \(number 0\.\.2147483647; default 30000\)'
says '^XIO_HEAP_SIZE \(size 1M\.\.1T; default 64M\)'
says '^    now: 77'
# Three groups, test knobs last.
checks=$((checks + 1))
order=$(grep -oE '^(user|transport|test): |^(XIO_ROUTE|XIO_RDMA_MTU|XIO_MODEL_FAULTS) ' <<<"$out" | tr -d ' \n')
[ "$order" = 'user:XIO_ROUTEtransport:XIO_RDMA_MTUtest:XIO_MODEL_FAULTS' ] || wrong "groups: $order"
# Also with an environment that is wrong: this is where one looks then.
status 0 XIO_HDP=fast -- --env
says 'now: fast'
status 1 XIO_HDP=fast --
says "XIO_HDP='fast' is not known; use one of auto\|none"
status 1 XIO_HDP=rdma_read --
says 'did you mean rdma-read\?'

has XIO_ENABLE_MODEL || {
  status 1 XIO_BACKEND=model --
  says '^xio-info: XIO_BACKEND=model asks for software devices, which this build lacks; '
}

# --- What it refuses ---
status 0 -- --help
says -- '--env'
status 0 -- --version
says '^xio-info of XIO [0-9]'
says '^  commit +([0-9a-f]{12}(-dirty)?|unknown)$'
if [ -e "$srcdir/.git" ] && command -v git >/dev/null; then
  says "^  commit +$(git -C "$srcdir" rev-parse --short=12 HEAD)"
fi
says "^  platform +$gpu\$"
says '^  gpu_targets +[^ ]'
says '^  fmt +[0-9]+\.[0-9]+'
says '^  model +(yes|no \(lost: )'
status 2 -- --version --env
says 'one subject each'
if command -v python3 >/dev/null; then
  status 0 -- --version --json
  equals "$gpu" build platform
  checks=$((checks + 1))
  [[ $(value libraries nlohmann_json) =~ ^[0-9]+\. ]] || wrong 'no version of nlohmann-json'
fi
status 2 -- --jsn
says 'the option --jsn is not known; did you mean --json\?'
status 2 -- --evn
says 'did you mean --env\?'
status 2 -- --frobnicate
says 'the option --frobnicate is not known; see xio-info --help'
status 2 -- --json=3
status 2 -- extra
says "'extra' is not expected"
status 2 -- -x
status 2 -- ''

echo "$checks checks, $failures failed"
exit $((failures != 0))
