// SPDX-License-Identifier: MIT
// All lanes of many waves post at once, each another kind and size of op, divergent within the wave: puts, puts with
// signal, with counter, with both, and tiles. On rings of four entries nobody may wait for ever, and every byte, signal
// and count must be there exactly once.
#include "rig.hpp"

namespace {

#if defined(XIO_ON_HOST)
constexpr unsigned k_storm_blocks = 4, k_storm_threads = 130, k_ops = 6;
#else
// PEs may share a GPU in turns, and a ring of four then moves four ops a turn.
constexpr unsigned k_storm_blocks = 3, k_storm_threads = 70, k_ops = 5;
#endif
constexpr unsigned k_lanes = k_storm_blocks * k_storm_threads;
constexpr size_t k_slot = 512;
constexpr size_t k_area = k_lanes * k_ops * k_slot;

enum kind { plain, with_signal, with_counter, with_both, tile };

// Op `i` of lane `lane`, within the slot of both.
struct plan {
  kind what;
  uint32_t dst, src, bytes;                     // copies
  uint32_t width, height, pitch_out, pitch_in;  // tiles
};

XIO_HOST_DEVICE plan plan_of(unsigned lane, unsigned i) {
  const uint32_t x = (lane * k_ops + i + 1) * 2654435761u;
  plan p{};
  p.what = static_cast<kind>((lane + i * 3 + lane / 64) % 5);
  p.dst = (x >> 9) % 61;
  p.src = (x >> 17) % 53;
  p.bytes = (x >> 4) % 380;
  if (p.what == tile) {
    const uint32_t element = 1u << (x >> 29) % 4;
    p.dst = p.dst / element * element;
    p.src = p.src / element * element;
    p.width = (1 + (x >> 5) % 5) * element;
    p.height = 1 + (x >> 12) % 9;
    p.pitch_out = p.width + (x >> 20) % 2 * element;
    p.pitch_in = p.width + (x >> 21) % 2 * element;
  }
  return p;
}

struct storm_memory {
  unsigned char *out, *in;  // symmetric
  uint64_t *signal, *counter;
};

__global__ void storm(xio_ctx_t ctx, storm_memory m, int to, uint64_t counts, int* bad) {
  const unsigned lane = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned i = 0; i < k_ops; ++i) {
    const plan p = plan_of(lane, i);
    const size_t slot = (static_cast<size_t>(lane) * k_ops + i) * k_slot;
    unsigned char* in = m.in + slot + p.dst;
    const unsigned char* out = m.out + slot + p.src;
    xio_status_t s = XIO_OK;
    switch (p.what) {
      case plain: xio_put_nbi(ctx, in, out, p.bytes, to); break;
      case with_signal: xio_put_signal_nbi(ctx, in, out, p.bytes, m.signal, 1, XIO_SIGNAL_ADD, to); break;
      case with_counter: s = xio_put_counter(ctx, in, out, p.bytes, m.counter, to); break;
      case with_both:
        s = xio_put_signal_counter(ctx, in, out, p.bytes, m.signal, 1, XIO_SIGNAL_ADD, m.counter, to);
        break;
      case tile: s = xio_put_2d(ctx, in, p.pitch_out, out, p.pitch_in, p.width, p.height, to); break;
    }
    if (s != XIO_OK) atomicCAS(bad, 0, s);
  }
  xio_status_t s = xio_quiet_wg(ctx);
  if (s == XIO_OK) s = xio_wait_counter(ctx, m.counter, counts);
  if (s != XIO_OK) atomicCAS(bad, 0, s);
}

void expect_slots(const std::vector<unsigned char>& got, int from) {
  std::vector<unsigned char> wanted(k_area, rig::k_poison);
  for (unsigned lane = 0; lane < k_lanes; ++lane) {
    for (unsigned i = 0; i < k_ops; ++i) {
      const plan p = plan_of(lane, i);
      const size_t slot = (static_cast<size_t>(lane) * k_ops + i) * k_slot;
      for (uint32_t b = 0; p.what != tile && b < p.bytes; ++b)
        wanted[slot + p.dst + b] = rig::pattern(from, slot + p.src + b);
      for (uint32_t row = 0; p.what == tile && row < p.height; ++row)
        for (uint32_t b = 0; b < p.width; ++b)
          wanted[slot + p.dst + row * p.pitch_out + b] = rig::pattern(from, slot + p.src + row * p.pitch_in + b);
    }
  }
  rig::expect_same(got, wanted, "what the storm left");
}

}  // namespace

int main() {
  rig::options o;
  // Unless the environment names a depth.
  o.ring_depth = std::getenv("XIO_RING_DEPTH") != nullptr ? 0 : 4;
  const rig::team t(o);
  storm_memory m{};
  m.out = t.symmetric_raw<unsigned char>(k_area);
  m.in = t.symmetric_raw<unsigned char>(k_area);
  m.signal = t.symmetric<uint64_t>(1);
  m.counter = t.symmetric<uint64_t>(1);
  rig::team::write(m.out, rig::source_of(t.me, k_area));
  uint64_t signals = 0, counts = 0;
  for (unsigned lane = 0; lane < k_lanes; ++lane)
    for (unsigned i = 0; i < k_ops; ++i) {
      const kind what = plan_of(lane, i).what;
      signals += what == with_signal || what == with_both ? 1 : 0;
      counts += what == with_counter || what == with_both ? 1 : 0;
    }
  for (uint64_t round = 1; round <= 3; ++round) {
    rig::team::write(m.in, std::vector<unsigned char>(k_area, rig::k_poison));
    t.barrier();
    const int bad = rig::result_of(storm, k_storm_blocks, k_storm_threads, t.ctx, m, t.right, round * counts);
    rig::expect(bad == 0, "round %d: status %s", static_cast<int>(round),
                xio_status_name(static_cast<xio_status_t>(bad)));
    t.barrier();
    expect_slots(rig::team::read(m.in, k_area), t.left);
    rig::expect(rig::team::read(m.signal, 1)[0] == round * signals, "signals");
    rig::expect(rig::team::read(m.counter, 1)[0] == round * counts, "counts");
    t.barrier();
  }
  return rig::verdict("storm", t);
}
