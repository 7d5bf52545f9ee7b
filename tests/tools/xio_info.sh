#!/bin/bash
# SPDX-License-Identifier: MIT
# What xio-info prints, and what it refuses.
# shellcheck source=tests/tools/said.sh
. "${0%/*}/said.sh" || exit 1
info=$builddir/xio-info
if [ ! -x "$info" ]; then skip 'this build has no xio-info: it wants nlohmann-json'; fi
unset "${!XIO_@}" 2>/dev/null

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
  holds "$*: '$got' and not '$expected'" [ "$got" = "$expected" ]
}

# --- What is here ---
replies 0 "^Platform" "$info"
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
replies 0 'XIO_FLAVOUR is not a variable of XIO' env XIO_FLAVOUR=1 "$info"
returns 0 env XIO_FLAVOUR=1 XIO_LOG_LEVEL=error "$info"
checks=$((checks + 1))
if [[ $out == *XIO_FLAVOUR* ]]; then wrong 'XIO_LOG_LEVEL=error silences the warning'; fi

# --- For programs ---
if command -v python3 >/dev/null; then
  returns 0 "$info" --json
  equals "$gpu" platform platform
  equals 67108864 memory heap_bytes
  holds 'GPU 0 has no memory' [ "$(value gpu0 memory_bytes)" -gt 0 ]
  returns 0 env XIO_HEAP_SIZE=2M "$info" --json
  equals 2097152 memory heap_bytes
  if [ "$gpu" = host ]; then
    equals none hdp way
    if has XIO_ENABLE_MODEL; then equals 'SDMA 4.4' sdma generation; else equals none sdma backend; fi
    equals True memory DEVICE_FINE_GRAINED
    for purpose in rings completions flags heap; do equals pages memory $purpose; done
    for way in device host sdma rdma-read readback; do
      returns 0 env XIO_HDP=$way "$info" --json
      equals "$way" hdp asked
      equals "$way" hdp way
    done
    returns 0 env XIO_HDP=rdma-read "$info" --json
    equals device hdp way_for_storage
    if has XIO_ENABLE_MODEL; then
      returns 0 env XIO_MODEL_GPU=gfx1201 "$info" --json
      equals 'SDMA 7' sdma generation
    fi
    # A way that cannot be is reported, and xio-info goes on.
    returns 0 env XIO_HDP=sdma XIO_MODEL_GPU=gfx1010 "$info" --json
    equals error hdp way
    says 'XIO_HDP=sdma cannot be'
  fi
  # Every variable of the table, and what is set now, but for keys.
  returns 0 env XIO_HDP=host XIO_TCP_KEY=mysecretmysecret "$info" --env --json
  rows=$(grep -c '^XIO_[A-Z]*_OPTION(' "$srcdir/src/base/options.def")
  holds "--env does not list $rows variables" [ "$(value | python3 -c 'import ast, sys; print(len(ast.literal_eval(sys.stdin.read())))')" = "$rows" ]
  says '"variable": "XIO_HDP"'
  says '"group": "transport"'
  says '"now": "host"'
  says '"now": "set"'
  silent mysecret
fi

# --- The environment ---
replies 0 '^XIO_HDP \(auto\|none\|device\|host\|sdma\|rdma-read\|readback; default auto\)' env XIO_TIMEOUT_MS=77 "$info" --env
says '^XIO_MEMORY_MODE \(auto, or number 0\.\.15; default auto\)'
says '^XIO_TIMEOUT_MS \(number 0\.\.2147483647; default 30000\)'
says '^XIO_HEAP_SIZE \(size 1M\.\.1T; default 64M\)'
says '^    now: 77'
# Three groups, test knobs last.
checks=$((checks + 1))
order=$(grep -oE '^(user|transport|test): |^(XIO_ROUTE|XIO_RDMA_MTU|XIO_MODEL_FAULTS) ' <<<"$out" | tr -d ' \n')
[ "$order" = 'user:XIO_ROUTEtransport:XIO_RDMA_MTUtest:XIO_MODEL_FAULTS' ] || wrong "groups: $order"
# Also with an environment that is wrong: this is where one looks then.
replies 0 'now: fast' env XIO_HDP=fast "$info" --env
replies 1 "XIO_HDP='fast' is not known; use one of auto\|none" env XIO_HDP=fast "$info"
replies 1 'did you mean rdma-read\?' env XIO_HDP=rdma_read "$info"

has XIO_ENABLE_MODEL || {
  replies 1 '^xio-info: XIO_BACKEND=model asks for software devices, which this build lacks; ' env XIO_BACKEND=model "$info"
}

# --- What it refuses ---
returns 0 "$info" --help
says -- '--env'
replies 0 '^xio-info of XIO [0-9]' "$info" --version
says '^  commit +([0-9a-f]{12}(-dirty)?|unknown)$'
if [ -e "$srcdir/.git" ] && command -v git >/dev/null; then
  says "^  commit +$(git -C "$srcdir" rev-parse --short=12 HEAD)"
fi
says "^  platform +$gpu\$"
says '^  gpu_targets +[^ ]'
says '^  fmt +[0-9]+\.[0-9]+'
says '^  model +(yes|no \(lost: )'
replies 2 'one subject each' "$info" --version --env
if command -v python3 >/dev/null; then
  returns 0 "$info" --version --json
  equals "$gpu" build platform
  checks=$((checks + 1))
  [[ $(value libraries nlohmann_json) =~ ^[0-9]+\. ]] || wrong 'no version of nlohmann-json'
fi
replies 2 'the option --jsn is not known; did you mean --json\?' "$info" --jsn
replies 2 'did you mean --env\?' "$info" --evn
replies 2 'the option --frobnicate is not known; see xio-info --help' "$info" --frobnicate
returns 2 "$info" --json=3
replies 2 "'extra' is not expected" "$info" extra
returns 2 "$info" -x
returns 2 "$info" ''

finish
