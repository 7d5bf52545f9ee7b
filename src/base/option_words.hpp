// SPDX-License-Identifier: MIT
// Options with a fixed set of words: an enum for each, and beside it the words in the order of the enumerators. A row
// of options.def names the enum as its kind. Text becomes an enumerator once, where the environment is read.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "xio/xio.h"

namespace xio::log {
enum class level;
}

namespace xio::option {

using word = std::string_view;

enum class bootstrap : std::uint8_t { automatic, mpi, tcp, ucx, pmi2, local };
constexpr auto words(bootstrap) { return std::to_array<word>({"auto", "mpi", "tcp", "ucx", "pmi2", "local"}); }

enum class heap_kind : std::uint8_t { device, uncached, fine, host, managed };
constexpr auto words(heap_kind) { return std::to_array<word>({"device", "uncached", "fine", "host", "managed"}); }

enum class gpu_sharing : std::uint8_t { yes, no };
constexpr auto words(gpu_sharing) { return std::to_array<word>({"yes", "no"}); }

enum class gpu_device : std::uint8_t { automatic, current };
constexpr auto words(gpu_device) { return std::to_array<word>({"auto", "current"}); }

enum class peer_access : std::uint8_t { automatic, off };
constexpr auto words(peer_access) { return std::to_array<word>({"auto", "off"}); }

using log_level = log::level;
constexpr auto words(log_level) { return std::to_array<word>({"error", "warn", "info", "debug", "trace"}); }

using route = xio_route_t;
constexpr auto words(route) { return std::to_array<word>({"auto", "direct", "rdma", "sdma"}); }

enum class sdma_queues_by : std::uint8_t { automatic, kernel, hsakmt };
constexpr auto words(sdma_queues_by) { return std::to_array<word>({"auto", "kernel", "libhsakmt"}); }

enum class backend : std::uint8_t { automatic, hw, model };
constexpr auto words(backend) { return std::to_array<word>({"auto", "hw", "model"}); }

enum class nvme_doorbell : std::uint8_t { automatic, bar, shadow, host, bridge };
constexpr auto words(nvme_doorbell) { return std::to_array<word>({"auto", "bar", "shadow", "host", "bridge"}); }

enum class storage_files_by : std::uint8_t { automatic, io_uring, hipfile, cufile };
constexpr auto words(storage_files_by) { return std::to_array<word>({"auto", "io_uring", "hipfile", "cufile"}); }

enum class vfio_iommu : std::uint8_t { automatic, type1, iommufd };
constexpr auto words(vfio_iommu) { return std::to_array<word>({"auto", "type1", "iommufd"}); }

enum class nic_executor : std::uint8_t { automatic, shm, tcp, verbs, libfabric };
constexpr auto words(nic_executor) { return std::to_array<word>({"auto", "shm", "tcp", "verbs", "libfabric"}); }

enum class nic_family : std::uint8_t { automatic, mlx5, mlx5_cq, mlx5_nodbr, bnxt, ionic, ionic_v1, ernic, proxy };
constexpr auto words(nic_family) {
  return std::to_array<word>({"auto", "mlx5", "mlx5_cq", "mlx5_nodbr", "bnxt", "ionic", "ionic_v1", "ernic", "proxy"});
}

enum class connect : std::uint8_t { automatic, eager, lazy };
constexpr auto words(connect) { return std::to_array<word>({"auto", "eager", "lazy"}); }

enum class rdma_atomic32 : std::uint8_t { automatic, emulate };
constexpr auto words(rdma_atomic32) { return std::to_array<word>({"auto", "emulate"}); }

// The numbers of enum ibv_mtu (rdma-core libibverbs/verbs.h); automatic is none of them.
enum class rdma_mtu : std::uint8_t { automatic, bytes_256, bytes_512, bytes_1024, bytes_2048, bytes_4096 };
constexpr auto words(rdma_mtu) { return std::to_array<word>({"auto", "256", "512", "1024", "2048", "4096"}); }

enum class hdp : std::uint8_t { automatic, none, device, host, sdma, rdma_read, readback };
constexpr auto words(hdp) {
  return std::to_array<word>({"auto", "none", "device", "host", "sdma", "rdma-read", "readback"});
}

enum class host_exec : std::uint8_t { fibers, threads };
constexpr auto words(host_exec) { return std::to_array<word>({"fibers", "threads"}); }

enum class host_wave : std::uint8_t { lanes_32, lanes_64 };
constexpr auto words(host_wave) { return std::to_array<word>({"32", "64"}); }

// The word of an enumerator.
template <class E>
constexpr word word_of(E value) {
  const auto all = words(value);
  const auto at = static_cast<std::size_t>(value);
  return at < all.size() ? all[at] : word("unknown");
}

// Its number among `all`. Throws XIO_ERR_CONFIG with the words that are allowed, and the nearest where one is near.
std::size_t number_of_word(std::string_view text, std::span<const word> all, const std::string& variable);

template <class E>
E parse_word(std::string_view text, const std::string& variable) {
  return static_cast<E>(number_of_word(text, words(E{}), variable));
}

// "auto|mpi|tcp", as rows of options.def and sentences list them.
constexpr bool are_listed(std::span<const word> all, std::string_view list) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i != 0) {
      if (!list.starts_with('|')) return false;
      list.remove_prefix(1);
    }
    if (!list.starts_with(all[i])) return false;
    list.remove_prefix(all[i].size());
  }
  return list.empty();
}

}  // namespace xio::option
