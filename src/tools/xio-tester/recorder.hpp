// SPDX-License-Identifier: MIT
// What lanes of a test kernel write down while they work. A lane has a record of its own, so nothing here is contended,
// and keeps it to itself until the end, but for the count of ops that the host watches: on a GPU the host's memory is
// far away.
#pragma once
#include "tools/xio-tester/pattern.hpp"

namespace xio::tester {

constexpr u32 k_buckets = 48;  // powers of two of ticks
constexpr u64 k_look_every = 16;

struct alignas(128) lane_record {
  u64 done;  // ops
  u64 least, most, sum;
  u64 began, ended;  // by the clock of the device
  // Sub-steps, sums of ticks: making the data or poisoning its place, posting, waiting, checking.
  u64 fill, post, wait, check;
  u64 verdicts[4];  // blocks, by verdict
  // The first block that was not good.
  u64 wrong_block, wrong_found;
  u32 wrong_verdict;
  // The first op that failed.
  int status;
  u64 failed_op, buckets[k_buckets];

  XIO_HOST_DEVICE void begin(u64 now) {
    if (done == 0) least = ~u64{0};
    began = now;
  }

  XIO_HOST_DEVICE void keep(u64 ticks) {
    if (ticks < least) least = ticks;
    if (ticks > most) most = ticks;
    sum += ticks;
    u32 bucket = 0;
    while (bucket + 1 < k_buckets && (ticks >> bucket) > 1) ++bucket;
    ++buckets[bucket];
  }

  XIO_HOST_DEVICE void fail(xio_status_t what, u64 op) {
    if (what == XIO_OK || status != XIO_OK) return;
    status = what;
    failed_op = op;
  }

  XIO_HOST_DEVICE void judge(const pattern& p, const u8* data, u64 bytes, u64 block, u64 end) {
    for (u64 at = 0; at < bytes; at += p.block_bytes, ++block) {
      u64 found = block;
      const u64 n = bytes - at < p.block_bytes ? bytes - at : p.block_bytes;
      const verdict v = p.judge(data + at, n, block, end, &found);
      note(v, block, found);
    }
  }
  XIO_HOST_DEVICE void note(verdict v, u64 block, u64 found) {
    ++verdicts[static_cast<u32>(v)];
    if (v == verdict::good || wrong_verdict != 0) return;
    wrong_block = block;
    wrong_found = found;
    wrong_verdict = static_cast<u32>(v);
  }
};

struct recorder {
  lane_record* lanes;
  u64* stamps;      // ticks of each op, by its number; null: lanes keep sums alone
  u64 stamps_mask;  // on the number: of a long run the last ops are kept
  const u32* stop;  // becomes 1 when the user has had enough

  // Looks at the host's memory only now and then; `turn` counts the calls.
  XIO_DEVICE bool stopped(u64 turn) const { return turn % k_look_every == 0 && stopped(); }
  XIO_DEVICE bool stopped() const { return dev::load<dev::scope::system, dev::order::relaxed>(stop) != 0; }
  XIO_DEVICE void count(u64 lane, lane_record& mine, u64 ops) const {
    mine.done += ops;
    dev::store<dev::scope::system, dev::order::relaxed>(&lanes[lane].done, mine.done);
  }
  XIO_DEVICE void end(u64 lane, lane_record& mine) const {
    mine.ended = dev::wall_clock();
    lanes[lane] = mine;
  }
  XIO_HOST_DEVICE void keep(lane_record& mine, u64 op, u64 ticks) const {
    mine.keep(ticks);
    if (stamps != nullptr) stamps[op & stamps_mask] = ticks == 0 ? 1 : ticks;  // 0: not done
  }
};

}  // namespace xio::tester
