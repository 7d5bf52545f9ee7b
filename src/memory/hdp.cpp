// SPDX-License-Identifier: MIT
#include "memory/hdp.hpp"

#include <cctype>
#include <optional>

#include "base/error.hpp"

namespace xio::memory {
namespace {

using dev::hdp_way;

bool has_hdp(const hdp_facts& f) { return f.link != hdp_link::none; }

// Pages of another size leave no room for the register's page: linux amdkfd kfd_chardev.c, kfd_mmio_mmap and
// kfd_ioctl_alloc_memory_of_gpu refuse MMIO_REMAP where PAGE_SIZE is above 4096.
constexpr std::uint64_t k_remap_page = 4096;

std::string why_no_register(const hdp_facts& f) {
  if (f.page_bytes != k_remap_page)
    return fmt::format("the kernel has pages of {} bytes and gives its register to programs with 4096 only",
                       f.page_bytes);
  return "the driver has not mapped its register";
}

// Why a way cannot be, or nothing. Without an HDP there is a stand-in for all that the real one would need.
std::optional<std::string> obstacle(const hdp_facts& f, hdp_way way) {
  switch (way) {
    case hdp_way::none: return {};
    case hdp_way::device:
      if (!has_hdp(f) || (f.register_mapped && f.kernels_store)) return {};
      return f.register_mapped ? "kernels may not store to its register" : why_no_register(f);
    case hdp_way::host:
      if (!has_hdp(f) || f.register_mapped) return {};
      return why_no_register(f);
    case hdp_way::readback:
      if (!has_hdp(f) || f.large_bar) return {};
      return "the CPU does not see all of the GPU's memory (no large BAR)";
    case hdp_way::sdma:
      if (f.sdma) return {};
      return "there is no copy queue of this GPU that takes a flush packet";
    case hdp_way::rdma_read:
      if (f.nic) return {};
      return "there is no RDMA device";
  }
  return "it is not known";
}

// --- Which writes need it ------------------------------------------------------------------------------------

// "gfx90a:sramecc+" is 0x90a; 0 for what is no such name.
unsigned gfx_number(const std::string& arch) {
  if (arch.rfind("gfx", 0) != 0) return 0;
  unsigned n = 0;
  std::size_t digits = 0;
  for (std::size_t i = 3; i < arch.size() && std::isxdigit(static_cast<unsigned char>(arch[i])) != 0; ++i, ++digits) {
    const char c = static_cast<char>(std::tolower(static_cast<unsigned char>(arch[i])));
    n = n * 16 + static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  return digits == 3 || digits == 4 ? n : 0;
}

struct need {
  bool flush;
  std::string why;
};

// The kernel's own rule leaves out APUs that are not passed through and GPUs on xGMI (linux amdgpu_device.c,
// amdgpu_device_flush_hdp). RCCL leaves out gfx90a and newer on PCIe, and reads back on gfx950 all the same, after a
// hang. An unknown GPU is flushed: one flush too many costs time, one too few costs data.
need need_of(const hdp_facts& f) {
  const std::string name = f.arch.substr(0, f.arch.find(':'));
  if (f.link == hdp_link::none)
    return {false,
            fmt::format("the GPU ({}) has no host data path: other devices' writes are in memory at once", name)};
  if (f.link == hdp_link::xgmi) return {false, fmt::format("{} is linked to its CPUs by xGMI, past the HDP", name)};
  if (f.link == hdp_link::apu) {
    if (!f.virtual_machine) return {false, fmt::format("{} is an APU: its memory is the CPUs', past the HDP", name)};
    return {true,
            fmt::format("{} is an APU passed through to a virtual machine, where a BAR leads to its memory", name)};
  }
  switch (gfx_number(name)) {
    case 0x90a:
    case 0x940:
    case 0x941:
    case 0x942: return {false, fmt::format("{} does not hold back what comes over PCIe", name)};
    case 0x950: return {true, fmt::format("{} on PCIe was seen to hang without a flush", name)};
    case 0: return {true, fmt::format("'{}' is on PCIe and not known to do without", name)};
    default: return {true, fmt::format("{} on PCIe holds back what comes through its BAR", name)};
  }
}

// --- Deciding ----------------------------------------------------------------------------------------

std::string how(hdp_way way) {
  switch (way) {
    case hdp_way::none: return "nothing is flushed";
    case hdp_way::device: return "kernels store to the flush register";
    case hdp_way::host: return "a thread of this process stores to the flush register";
    case hdp_way::sdma: return "kernels post a flush packet on a copy queue";
    case hdp_way::rdma_read: return "kernels post a read of their own heap by every NIC";
    case hdp_way::readback: return "a thread of this process writes and reads back a line of the heap";
  }
  return "";
}

// Reads by a NIC push what the NIC itself wrote, and nobody else's writes (see docs/hdp.md).
hdp_way for_storage(const hdp_facts& f, hdp_way way) {
  if (way != hdp_way::rdma_read) return way;
  for (const hdp_way other : {hdp_way::device, hdp_way::host, hdp_way::readback})
    if (!obstacle(f, other)) return other;
  return hdp_way::rdma_read;
}

hdp_decision decided(const hdp_facts& f, hdp_way way, const std::string& why) {
  return {way, for_storage(f, way), fmt::format("{}; {}", why, how(way))};
}

hdp_way way_of(option::hdp wish) {
  switch (wish) {
    case option::hdp::device: return hdp_way::device;
    case option::hdp::host: return hdp_way::host;
    case option::hdp::sdma: return hdp_way::sdma;
    case option::hdp::rdma_read: return hdp_way::rdma_read;
    case option::hdp::readback: return hdp_way::readback;
    case option::hdp::none:
    case option::hdp::automatic: break;
  }
  return hdp_way::none;
}

hdp_decision decide_automatically(const hdp_facts& f) {
  const need n = need_of(f);
  if (!n.flush) return decided(f, hdp_way::none, n.why);
  if (!f.register_mapped && f.page_bytes != k_remap_page && !obstacle(f, hdp_way::readback))
    return decided(f, hdp_way::readback, fmt::format("{}, and {}", n.why, why_no_register(f)));
  std::string missing;
  for (const hdp_way way : {hdp_way::device, hdp_way::sdma, hdp_way::rdma_read, hdp_way::host, hdp_way::readback}) {
    const auto no = obstacle(f, way);
    if (!no) return decided(f, way, n.why + missing);
    missing += fmt::format(", not {} since {}", hdp_way_name(way), *no);
  }
  fail(XIO_ERR_UNSUPPORTED,
       "the HDP must be flushed, since {}, and nothing can{}; set XIO_HDP=none if neither NICs, drives nor other GPUs "
       "write into this GPU's memory",
       n.why, missing);
}

}  // namespace

const char* hdp_way_name(hdp_way way) {
  switch (way) {
    case hdp_way::none: return "none";
    case hdp_way::device: return "device";
    case hdp_way::host: return "host";
    case hdp_way::sdma: return "sdma";
    case hdp_way::rdma_read: return "rdma-read";
    case hdp_way::readback: return "readback";
  }
  return "unknown";
}

const char* hdp_link_name(hdp_link link) {
  switch (link) {
    case hdp_link::none: return "none";
    case hdp_link::pcie: return "PCIe";
    case hdp_link::xgmi: return "xGMI";
    case hdp_link::apu: return "APU";
  }
  return "unknown";
}

hdp_decision decide_hdp(const hdp_facts& facts, option::hdp wish) {
  if (wish == option::hdp::automatic) return decide_automatically(facts);
  const hdp_way way = way_of(wish);
  if (const auto no = obstacle(facts, way))
    fail(XIO_ERR_UNSUPPORTED, "XIO_HDP={} cannot be on {}: {}; set XIO_HDP=auto", option::word_of(wish), facts.arch,
         *no);
  return decided(facts, way, fmt::format("XIO_HDP={} asks for it", option::word_of(wish)));
}

}  // namespace xio::memory
