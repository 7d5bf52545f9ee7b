#!/bin/bash
# SPDX-License-Identifier: MIT
# lint.sh SRCDIR BUILDDIR FLAGS...: the habits of the house, as make lint runs them. Looks at all of it and fails
# at the end if anything was found.
set -uo pipefail
srcdir=$1 builddir=$2
shift 2
cd "$srcdir" || exit 1
found=0

complain() {
  echo "lint: $1"
  found=1
}

# Tracked and new files, not what a build made.
mapfile -t files < <(if [ -e .git ]; then git ls-files -co --exclude-standard; else find . -type f | sed 's|^\./||'; fi | sort)
matching() {
  local file
  for file in "${files[@]}"; do if [[ $file =~ $1 && -e $file ]]; then echo "$file"; fi; done
}

# Names: a file is called after its subject.
while read -r file; do complain "$file: name a file after its subject, not util, common, misc or helper"; done < \
  <(matching '(^|/)[^/]*(util|common|misc|helper)[^/]*\.[a-z]+$')

# Layers include downwards only. forbid PLACE INCLUDES WHY [BUT]: files of PLACE, but for the one file BUT.
forbid() {
  local hits
  hits=$(matching "$1" | grep -vxF "${4:-}" | xargs -r grep -nE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]($2)" /dev/null)
  if [ -n "$hits" ]; then
    echo "$hits"
    complain "$3"
  fi
}
forbid '^src/model/' '(transport|gpu|ctx|memory|topology|bootstrap)/' 'a model knows the wire, base and the proxy, nothing of the library above it'
forbid '^src/proxy/' '(model|transport|ctx|topology)/' 'the proxy carries neutral ops and knows no software device'
forbid '^src/progress/' '(model|proxy|transport|ctx|memory|topology|bootstrap)/' 'progress runs devices and knows none'
forbid '^src/transport/' 'ctx/' 'a transport does not know ctx/'
forbid '^src/transport/' 'model/' 'a transport gets its software devices from the registry, software.cpp' 'src/transport/software.cpp'
forbid '^src/(ctx|transport|bootstrap|memory|topology|gpu)/' 'stream/' 'calls on a stream stand above what they call'
forbid '^src/(memory|topology|gpu)/' '(ctx|transport|bootstrap)/' 'memory, topology and gpu do not know the rooms above them'
forbid '^src/base/' '(ctx|transport|memory|topology|gpu|bootstrap|model|proxy|progress)/' 'base knows no other room'
forbid '^sim/' '(ctx|transport|gpu|memory|topology|bootstrap|tools)/' 'a machine in software stands above the models, and knows nothing of what drives them'
forbid '^src/' '(amdgpu|uverbs|kmod|preload)/' 'libxio knows no machine of sim/'
forbid '^include/' '(base|ctx|transport|memory|topology|gpu|bootstrap|model|proxy|progress)/' 'public headers do not include src/'
forbid '^include/xio/device/impl/' 'xio/device/[a-z_]+\.hpp' 'how a call is done does not know the calls' include/xio/device/impl/combine.hpp
forbid '^include/xio/device/platform/' 'xio/(device/[a-z_]+\.hpp|device/impl|wire)' 'a platform knows no op'
hits=$(matching '^include/xio/device/[a-z_]+\.hpp$' | xargs -r grep -nE '^[^/]*(\) (const )?\{|\{$)|^ +return ' /dev/null)
if [ -n "$hits" ]; then
  echo "$hits"
  complain 'a header of calls declares them with their documentation; bodies are in impl/'
fi
hits=$(matching '^include/xio/wire/' | xargs -r grep -nE '^[[:space:]]*#[[:space:]]*include' /dev/null |
  grep -vE '[<"](xio/wire/)?endian\.hpp[>"]|<cstdint>|<stdint\.h>|<cstddef>')
if [ -n "$hits" ]; then
  echo "$hits"
  complain 'wire/ includes endian.hpp and the standard integer header only'
fi

# Orders of device code have one place for each kind of GPU; on AMD's the compiler's own releases do not wait (decision 0060).
hits=$(matching '^(include/xio/device|examples)/' | grep -v '/device/platform/' |
  xargs -r grep -nE '__hip_atomic_|__atomic_|__builtin_amdgcn_fence|__builtin_nontemporal_|__threadfence' /dev/null)
if [ -n "$hits" ]; then
  echo "$hits"
  complain 'device code loads, stores and fences by the functions of device/platform/platform.hpp'
fi

# A platform's name stands in its own file.
hits=$(matching '^include/xio/device/' | grep -v '/device/platform/' |
  xargs -r grep -nE 'XIO_ON_|__HIP|__HCC|__CUDA|__NVCC|__NVPTX|__AMDGCN|__gfx[0-9]|__GFX[0-9]|\<(amdgcn|ptx|host_exec)::' /dev/null)
if [ -n "$hits" ]; then
  echo "$hits"
  complain 'what platforms say differently has a name in device/platform/platform.hpp'
fi

# Device code: what belongs together travels as one structure.
matching '^include/xio/device/.*\.hpp$' | xargs -r tests/lint_parameters ||
  complain 'a function of device code has at most six parameters: name what belongs together'

# First line: the licence.
while read -r file; do
  if ! head -n 3 "$file" | grep -q 'SPDX-License-Identifier: MIT'; then complain "$file: no SPDX-License-Identifier line"; fi
done < <(matching '^(src|sim|include|examples|bench|tests|kernel)/.*\.(hpp|cpp|h|c|hip|cu|sh|am)$')

# Every source is listed in its room, or it would be missing from a release.
lists=$(cat Makefile.am; matching '/module\.am$' | xargs cat)
names=" $(tr -s ' \t\n' ' ' <<<"$lists") "
while read -r file; do
  # Or by its program, which without a list of its own is made of that source.
  if [[ $lists != *"$file"* && $names != *" ${file%.*} "* ]]; then complain "$file: in no module.am"; fi
done < <(matching '^(src|sim|examples|bench|tests)/.*\.(hpp|cpp|h|c|hip|cu|sh|def|pml)$' | grep -v '^tests/lint\.sh$')

# Words: docs/glossary.md.
tests/lint_words ||
  complain 'words that docs/glossary.md replaces: write what each line says, or list it with its reason in tests/lint_words.allowed'

# A page begins with those for whom it is.
for page in docs/*.md; do
  if [[ $(sed -n 3p "$page") != For\ * ]]; then complain "$page: begin the first paragraph with those for whom the page is: For ..."; fi
done

# docs/glossary.md has every name of a platform.
platform=include/xio/device/platform/platform.hpp
while read -r name; do
  if ! grep -qF "\`$name\`" docs/glossary.md; then complain "docs/glossary.md does not say what $name of $platform is"; fi
done < <({ grep -ohE '\b(XIO_[A-Z_]+|k_[a-z_]+)\b' $platform; sed -nE '/defined/d; s,//.*,,; s/^[^(]*\b([a-z_]+)\(.*/\1/p; s/^class ([a-z_]+);/\1/p' $platform; } | sort -u)

if command -v clang-format >/dev/null; then
  while read -r file; do
    complain "$file: not formatted; run clang-format -i $file"
  done < <(matching '^(src|sim|include|examples|bench|tests|kernel)/.*\.(hpp|cpp|h|c|hip|cu)$' |
    xargs -r -P "$(nproc)" -n 16 clang-format --dry-run -Werror 2>&1 | sed -n 's/^\([^ :]*\):[0-9]*:[0-9]*: error: .*/\1/p' | sort -u)
else
  echo "lint: no clang-format, skipped"
fi

if command -v shellcheck >/dev/null; then
  { matching '\.sh$'; echo autogen.sh quickstart src/tools/xiocc .ci/run tests/leave_out tests/sanitize tests/sanitize_gpu tests/without_models tests/vm/{run,image,iommufd,headers,carry,init} tests/amdgpu/{run,check} man/section{1,3} build-aux/{compile-pic,nvcc-as-cxx}; } |
    xargs -n 8 -P "$(nproc)" shellcheck -x || complain 'shellcheck: see above'
else
  echo "lint: no shellcheck, skipped"
fi

# to_tidy: of the sources on standard input those to look at: all, or with XIO_TEST_LEAVE_OUT=1 those that have changed, or include
# what has changed, since all were clean (tests/tidy.clean, which make tidy writes).
to_tidy() {
  local changed sources
  if [ "${XIO_TEST_LEAVE_OUT-}" != 1 ] || ! changed=$(git diff --name-only "$(<tests/tidy.clean)" -- src include .clang-tidy 2>/dev/null) ||
    grep -qxF .clang-tidy <<<"$changed"; then
    cat
    return
  fi
  sources=$(cat)
  {
    grep -xF "$changed" <<<"$sources" || true
    xargs grep -lFf <(sed -nE 's,^(src|include)/(.*\.(h|hpp|def))$,\2,p' <<<"$changed" | sed 's/.*/"&"\n<&>/') <<<"$sources" || true
  } | sort -u
}
if command -v clang-tidy >/dev/null; then
  left_out='^src/gpu/(hip|cuda)\.'
  if ! "${CXX:-g++}" -E -x c++ -include rdma/fi_atomic.h /dev/null >/dev/null 2>&1; then
    left_out+='|^src/proxy/ofi_|^src/transport/rdma/libfabric\.'
    echo "lint: no headers of libfabric, its sources skipped"
  fi
  # From the build folder, so that relative -I and config.h are found.
  matching '^src/.*\.cpp$' | grep -vE "$left_out" | to_tidy | sed "s|^|$PWD/|" |
    (cd "$builddir" && xargs -r -P "$(nproc)" -n 4 bash "$OLDPWD/tests/tidy.sh" "-std=c++20 -I. -DHAVE_CONFIG_H $*") ||
    complain 'clang-tidy: see above'
else
  echo "lint: no clang-tidy, skipped"
fi

if [ $found = 0 ]; then echo "lint: clean"; fi
exit $found
