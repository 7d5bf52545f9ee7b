// SPDX-License-Identifier: MIT
// Put and get over scopes, sizes and alignments. Every case has its own place in one large destination; afterwards the
// whole destination is compared with an image that was made by plain copies, poison and guards included.
#include "rig.hpp"

using rig::scope;

namespace {

struct item {
  uint32_t dst, src, bytes;
};

enum mode { blocking, nbi_quiet, nbi_wait };
constexpr const char* k_mode_names[] = {"blocking", "nbi and quiet", "nbi and wait"};

constexpr uint32_t k_guard = 16;
constexpr uint32_t k_source_bytes = (1 << 20) + 4096;

// Every pair of alignments for small sizes; sixteen, four or two pairs for larger ones.
std::vector<item> make_items(bool all_pairs) {
  const std::vector<uint32_t> sizes = {0,  1,  2,  3,  4,  7,   8,   9,   15,   16,   17,   28,   29,        31,
                                       32, 33, 63, 64, 65, 127, 128, 129, 1000, 4095, 4096, 4097, 65536 + 3, 1 << 20};
  std::vector<item> items;
  uint32_t at = k_guard;
  for (const uint32_t bytes : sizes) {
    const uint32_t pairs = bytes > 65536 * 2 ? 2 : bytes > 4097 ? 4 : bytes > 33 || !all_pairs ? 16 : 256;
    for (uint32_t k = 0; k < pairs; ++k) {
      const uint32_t to = pairs == 256 ? k / 16 : (k * 16 / pairs + k) % 16;
      const uint32_t from = pairs == 256 ? k % 16 : (7 * k + 3 * bytes) % 16;
      const uint32_t turn = static_cast<uint32_t>(items.size()) % 97;
      items.push_back({at + to, 16 * turn + from, bytes});
      at = (at + to + bytes + k_guard + 15) / 16 * 16;
    }
  }
  return items;
}

uint32_t end_of(const std::vector<item>& items) {
  return (items.back().dst + items.back().bytes + k_guard + 15) / 16 * 16;
}

template <scope S, bool Put>
__global__ void move(xio_ctx_t ctx, unsigned char* dst, const unsigned char* src, const item* items, uint32_t count,
                     int pe, int how, int* bad) {
  const rig::caller me = rig::who<S>();
  xio_status_t worst = XIO_OK;
  for (uint32_t i = me.index; i < count; i += me.count) {
    unsigned char* to = dst + items[i].dst;
    const unsigned char* from = src + items[i].src;
    xio_status_t status = XIO_OK;
    if (how == blocking) {
      status = Put ? RIG_BY_SCOPE(S, xio_put, ctx, to, from, items[i].bytes, pe)
                   : RIG_BY_SCOPE(S, xio_get, ctx, to, from, items[i].bytes, pe);
    } else {
      const xio_req_t request = Put ? RIG_BY_SCOPE(S, xio_put_nbi, ctx, to, from, items[i].bytes, pe)
                                    : RIG_BY_SCOPE(S, xio_get_nbi, ctx, to, from, items[i].bytes, pe);
      if (how == nbi_wait) status = xio_wait(ctx, request);
    }
    if (status != XIO_OK) worst = status;
  }
  const xio_status_t last = xio_quiet(ctx);
  if (worst != XIO_OK) *bad = worst;
  if (last != XIO_OK) *bad = last;
}

template <scope S, bool Put>
void all_sizes(const rig::team& t, unsigned char* dst, unsigned char* src, int shift, mode how, bool all_pairs) {
  const std::vector<item> items = make_items(all_pairs);
  const size_t bytes = end_of(items);
  const rig::device_array<item> table(items);
  std::vector<unsigned char> wanted(bytes, rig::k_poison);
  rig::team::write(dst, wanted);
  t.barrier();
  const int target = (t.me + shift) % t.n;
  const int bad = rig::result_of(move<S, Put>, rig::k_blocks, rig::k_threads, t.ctx, dst, src, table.data(),
                                 static_cast<uint32_t>(items.size()), target, static_cast<int>(how));
  t.barrier();
  // These bytes came from the PE that has us as target, or from our target by get.
  const std::vector<unsigned char> from = rig::source_of(Put ? (t.me - shift + t.n) % t.n : target, k_source_bytes);
  for (const item& i : items) std::memcpy(wanted.data() + i.dst, from.data() + i.src, i.bytes);
  const std::string what =
      rig::text("%s, %s, %s, with PE +%d", Put ? "put" : "get", rig::k_scope_names[S], k_mode_names[how], shift);
  rig::expect_status(bad, XIO_OK, what.c_str());
  rig::expect_same(rig::team::read(dst, bytes), wanted, what.c_str());
  t.barrier();
}

template <scope S>
void one_scope(const rig::team& t, unsigned char* dst, unsigned char* src) {
  for (const mode how : {blocking, nbi_quiet, nbi_wait}) {
    const bool full = how == blocking && S == rig::thread;
    all_sizes<S, true>(t, dst, src, 1 % t.n, how, full);
    all_sizes<S, false>(t, dst, src, 1 % t.n, how, full);
  }
  if (t.n > 1) {
    all_sizes<S, true>(t, dst, src, 0, blocking, false);
    all_sizes<S, false>(t, dst, src, 0, nbi_quiet, false);
  }
}

}  // namespace

int main() {
  const rig::team t;
  const size_t bytes = end_of(make_items(true));
  auto* dst = t.symmetric<unsigned char>(bytes);
  auto* src = t.symmetric<unsigned char>(k_source_bytes);
  rig::team::write(src, rig::source_of(t.me, k_source_bytes));
  one_scope<rig::thread>(t, dst, src);
  one_scope<rig::wave>(t, dst, src);
  one_scope<rig::workgroup>(t, dst, src);
  rig::expect_same(rig::team::read(src, k_source_bytes), rig::source_of(t.me, k_source_bytes), "sources");
  return rig::verdict("rma", t);
}
