#!/bin/bash
# SPDX-License-Identifier: MIT
# The manual is made of headers and docs without a warning, and what a user looks for is in it.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
if ! command -v doxygen >/dev/null; then skip 'no doxygen: the manual is not made'; fi
out=$builddir/tests/docs/manual
rm -rf "$out"
mkdir -p "$out"
cd "$srcdir"
XIO_HTML=$out doxygen Doxyfile

# says PAGE WORDS: the page is there and has them in its text.
says() {
  local text
  text=$(sed 's/<[^>]*>//g' "$out/html/$1")
  if ! grep -qF -- "$2" <<<"$text"; then echo "$1 does not say: $2" && exit 1; fi
}
says rma_8hpp.html 'xio_put_nbi_wave (const xio_ctx_t &amp;ctx, void *dst, const void *src, size_t bytes, int pe)'
says rma_8hpp.html 'Remote memory access: put, get, scalars, strided and tiled copies.'
says rma_8hpp.html 'size of the copy in bytes'
says storage_8hpp.html 'xio_read_wg (const xio_ctx_t &amp;ctx, void *buf, xio_storage_t storage'
says xio_8h.html 's copy of a symmetric address can be loaded and stored from here; null if it cannot be'
says structxio__ctx__attr.html 'forces the way of every op'
says status_8h.html 'a local buffer that an engine must reach is not registered'
says md_docs_ordering.html 'store buffering'
says index.html 'What has run where'
if [ ! -s "$out/html/nvshmem.svg" ]; then echo 'pictures of README are not in the manual' && exit 1; fi
if grep -rqs 'fetch_change' "$out/html/atomic_8hpp.html"; then echo 'the inside shows' && exit 1; fi
pages=$(find "$out/html" -name '*.html' | wc -l)

# Section 3: a page for every call of the public headers, which leads to its header's, which says what the call does.
man/section3 "$srcdir" "$out/man3"
calls=0
for header in include/xio/{xio,status,memory,sdma,team,stream,host}.h include/xio/device/*.hpp; do
  # A call begins a line; names behind xio::dev are the inside.
  while read -r call; do
    page=$out/man3/$call.3
    if [ ! -e "$page" ]; then echo "no manual page for $call of $header" && exit 1; fi
    page=$out/man3/xio_${header##*/}.3
    page=${page/xio_xio.h/xio.h}
    said=$(awk -v call="$call" '
      /^\.SS / { on = $0 ~ "[ *B]" call "(\\\\fP)? [(]"; next }
      on && !/^[.]/ { n += length($0) }
      END { print n + 0 }' "$page")
    if [ "$said" -lt 10 ]; then echo "the manual says nothing about $call of $header" && exit 1; fi
    calls=$((calls + 1))
  done < <(awk -f docs/headers.awk "$header" | sed -nE 's/^(XIO_EXPORT|XIO_DEVICE) .*[ *](xio_[a-z0-9_]+)\(.*/\2/p')
done
if [ "$calls" -lt 175 ]; then echo "only $calls calls found in the public headers" && exit 1; fi
echo "$pages pages, $calls calls in section 3"
rm -rf "$out"
