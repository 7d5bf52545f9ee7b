// SPDX-License-Identifier: MIT
// Litmus tests within one GPU, and between it and the host, in every kind of memory.

#include "base/error.hpp"
#include "gpu/gpu.hpp"
#include "tools/xio-verify/litmus_row.hpp"
#include "tools/xio-verify/worker.hpp"
#include "xio/memory.h"

namespace xio::verify {
namespace {

constexpr std::uint32_t k_scratch_words = 1 << 18;
constexpr std::uint64_t k_wait_ms = 5000;

class block {
 public:
  block(xio_mem_kind_t kind, std::uint64_t words) : bytes_(words * sizeof(std::uint64_t)) {
    if (xio_mem_alloc(kind, bytes_, nullptr, &at_) != XIO_OK) fail(XIO_ERR_NO_MEMORY, "{}", xio_last_error());
  }
  ~block() { (void)xio_mem_free(at_); }
  block& operator=(block&&) = delete;

  std::uint64_t* words() const { return static_cast<std::uint64_t*>(at_); }
  void clear() const { gpu::fill_zero(at_, bytes_); }

 private:
  void* at_ = nullptr;
  std::size_t bytes_;
};

bool is_of_host(xio_mem_kind_t kind) { return kind < XIO_MEM_DEVICE_FINE_GRAINED; }

// Which parties run on the host.
struct assignment {
  const char* agents;
  std::uint32_t on_host;
};
constexpr assignment k_in_gpu{"workgroups of one GPU", 0};
constexpr assignment k_with_host[] = {{"GPU, then host", 0b010}, {"host, then GPU", 0b101}};

struct pair_of_kinds {
  xio_mem_kind_t data, flags;
};

// Whether XIO may count on order there. In one GPU all of its memory is seen through the same caches. Data that host
// and GPU pass each other are ordered in coherent memory alone; on NVIDIA GPUs and on the host platform all memory is
// coherent.
litmus_place place_of(const assignment& a, const pair_of_kinds& k) {
  litmus_place p{a.agents, xio_mem_kind_name(k.data), xio_mem_kind_name(k.flags), true, true, a.on_host == 0};
  const std::string platform = gpu::name();
  const bool coherent = k.data == XIO_MEM_HOST_COHERENT && k.flags == XIO_MEM_HOST_COHERENT;
  p.promised = a.on_host == 0 || coherent || platform != "hip";
  // PCIe carries few atomics, and device/platform/platform.hpp asks for none on host memory.
  p.promised_atomics = platform == "host" || (p.promised && !is_of_host(k.data) && !is_of_host(k.flags));
  return p;
}

class places {
 public:
  places(row_writer& rows, bool quick)
      : rows_(rows),
        amount_(amount_of(quick)),
        gate_(XIO_MEM_HOST_COHERENT, k_gate_words),
        registers_(XIO_MEM_HOST_COHERENT, register_words(amount_.instances)),
        scratch_(XIO_MEM_DEVICE_HIP, k_scratch_words) {}

  bool try_all(const assignment& a, const pair_of_kinds& k) {
    const block data(k.data, data_words(amount_.instances)), flags(k.flags, flag_words(amount_.instances));
    const litmus_place place = place_of(a, k);
    bool good = true;
    for (int i = 0; i < k_litmus_count; ++i) {
      const auto t = static_cast<litmus>(i);
      if (!goes_with(t, place)) continue;
      good = add_litmus_row(rows_, t, place, amount_,
                            [&](litmus_result& r) { return play_batch(t, a, data, flags, r); }) &&
             good;
    }
    return good;
  }

 private:
  std::string play_batch(litmus t, const assignment& a, const block& data, const block& flags, litmus_result& r) {
    for (const block* b : {&data, &flags, const_cast<const block*>(&gate_), const_cast<const block*>(&registers_)})
      b->clear();
    litmus_work w{data.words(),        flags.words(),     gate_.words(),
                  registers_.words(),  scratch_.words(),  gpu::ticks_per_ms() * k_wait_ms,
                  k_wait_ms * 1000000, amount_.instances, k_scratch_words};
    const std::uint32_t all = (1u << facts_of(t).parties) - 1;
    if (const char* wrong = play(t, w, all & ~a.on_host, all & a.on_host, amount_.traffic)) return wrong;
    std::vector<std::uint64_t> registers(register_words(amount_.instances));
    gpu::copy(registers.data(), registers_.words(), registers.size() * sizeof registers[0]);
    count(t, registers.data(), amount_.instances, r);
    return "";
  }

  row_writer& rows_;
  litmus_amount amount_;
  block gate_, registers_, scratch_;
};

}  // namespace

bool try_orders(row_writer& rows, bool quick) {
  gpu::init(0);
  places p(rows, quick);
  bool good = true;
  std::vector<xio_mem_kind_t> kinds;
  for (const xio_mem_kind_t kind : {XIO_MEM_DEVICE_FINE_GRAINED, XIO_MEM_DEVICE_UNCACHED, XIO_MEM_DEVICE_COARSE_GRAINED,
                                    XIO_MEM_HOST_COHERENT, XIO_MEM_HOST_MAPPED, XIO_MEM_HOST_PINNED}) {
    if (xio_mem_supports(kind) == XIO_OK) {
      kinds.push_back(kind);
    } else {
      rows.add({{"test", "all"}, {"data", xio_mem_kind_name(kind)}, {"status", "skipped"}, {"why", xio_last_error()}});
    }
  }
  for (const xio_mem_kind_t kind : kinds) good = p.try_all(k_in_gpu, {kind, kind}) && good;
  // Rings in one memory, doorbells and completions in the other.
  good = p.try_all(k_in_gpu, {XIO_MEM_DEVICE_FINE_GRAINED, XIO_MEM_HOST_COHERENT}) && good;
  good = p.try_all(k_in_gpu, {XIO_MEM_HOST_COHERENT, XIO_MEM_DEVICE_FINE_GRAINED}) && good;
  for (const assignment& a : k_with_host)
    for (const xio_mem_kind_t kind : kinds)
      if (is_of_host(kind) || gpu::host_reads_device_memory()) good = p.try_all(a, {kind, kind}) && good;
  return good;
}

}  // namespace xio::verify
