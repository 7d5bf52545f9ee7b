// SPDX-License-Identifier: MIT
#include "ctx/attributes.hpp"

#include <bit>

#include "bootstrap/unique_id.hpp"
#include "transport/software.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/wire/inbox.hpp"

namespace xio {
namespace {

constexpr std::uint64_t k_least_heap = std::uint64_t{1} << 20;
constexpr std::uint64_t k_most_heap = std::uint64_t{1} << 40;

std::vector<setting> settings_of(const xio_init_attr_t& a) {
  if (a.options == nullptr && a.option_count != 0)
    fail(XIO_ERR_CONFIG, "xio_init_attr_t.options is null and option_count {}; give both, or neither", a.option_count);
  std::vector<setting> all;
  for (std::size_t i = 0; a.options != nullptr && i < a.option_count; ++i) {
    const xio_option_t& one = a.options[i];
    if (one.name == nullptr || one.value == nullptr)
      fail(XIO_ERR_CONFIG, "xio_init_attr_t.options[{}] has no {}; give both name and value", i,
           one.name == nullptr ? "name" : "value");
    all.push_back({one.name, one.value});
  }
  return all;
}

// How to connect to the other PEs, and for how long to try.
void override_bootstrap(const xio_init_attr_t& a, bootstrap_options& o) {
  if (a.tcp_root != nullptr) o.tcp_root = a.tcp_root;
  if (a.tcp_size > 0) {
    o.tcp_rank = std::to_string(a.tcp_rank);
    o.tcp_size = std::to_string(a.tcp_size);
  }
  if (a.timeout_ms != 0) o.timeout_ms = a.timeout_ms == UINT32_MAX ? 0 : a.timeout_ms;
  // Last, for it may throw.
  if (a.bootstrap != nullptr)
    o.bootstrap = option::parse_word<option::bootstrap>(a.bootstrap, "xio_init_attr_t.bootstrap");
}

// A unique id is of the TCP bootstrap, a communicator of MPI's.
void refuse_other_bootstrap(const xio_init_attr_t& a, const bootstrap_options& o) {
  if (a.bootstrap == nullptr) return;
  if (a.unique_id != nullptr && o.bootstrap != option::bootstrap::tcp)
    fail(XIO_ERR_CONFIG, "xio_init_attr_t has a unique_id and the bootstrap '{}'; a unique id is for \"tcp\" or null",
         a.bootstrap);
  if (a.mpi_comm != nullptr && o.bootstrap != option::bootstrap::mpi)
    fail(XIO_ERR_CONFIG,
         "xio_init_attr_t has an mpi_comm and the bootstrap '{}'; a communicator is for \"mpi\" or null", a.bootstrap);
}

void refuse_half_a_place(const xio_init_attr_t& a) {
  if (a.unique_id == nullptr && (a.unique_rank != 0 || a.unique_size != 0))
    fail(
        XIO_ERR_CONFIG,
        "xio_init_attr_t.unique_id is null, and unique_rank {} of unique_size {} are given; give the id, or 0 for both",
        a.unique_rank, a.unique_size);
  if (a.mpi_comm == nullptr && (a.mpi_comm_bytes != 0 || a.mpi_kind != 0))
    fail(XIO_ERR_CONFIG,
         "xio_init_attr_t.mpi_comm is null, and mpi_comm_bytes {} and mpi_kind {} are given; give it, or 0 for both",
         a.mpi_comm_bytes, a.mpi_kind);
  if (a.unique_id != nullptr && a.mpi_comm != nullptr)
    fail(XIO_ERR_CONFIG, "xio_init_attr_t has a unique_id and an mpi_comm; give one of them");
}

std::uint32_t power_of_two(const char* what, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  if (!std::has_single_bit(value) || value < least || value > most)
    fail(XIO_ERR_CONFIG, "{} is {}; use a power of two from {} to {}", what, value, least, most);
  return static_cast<std::uint32_t>(value);
}

}  // namespace

options init_options(const xio_init_attr_t* attr) {
  const xio_init_attr_t a = read_attr(attr, "xio_init_attr_t");
  options o = options::from_environment(settings_of(a));
  software::check_backend(o.backend);
  override_bootstrap(a, o);
  if (a.reserved != 0) fail(XIO_ERR_CONFIG, "xio_init_attr_t.reserved is {}; set it to 0", a.reserved);
  if (a.tcp_size < 0 || (a.tcp_size > 0 && (a.tcp_rank < 0 || a.tcp_rank >= a.tcp_size)))
    fail(XIO_ERR_CONFIG, "xio_init_attr_t: tcp_rank {} of tcp_size {} cannot be; use 0 <= tcp_rank < tcp_size",
         a.tcp_rank, a.tcp_size);
  refuse_other_bootstrap(a, o);
  if (a.heap_bytes != 0) {
    if (a.heap_bytes < k_least_heap || a.heap_bytes > k_most_heap)
      fail(XIO_ERR_CONFIG, "xio_init_attr_t.heap_bytes is {}; use {} (1M) to {} (1T)", a.heap_bytes, k_least_heap,
           k_most_heap);
    o.heap_size = a.heap_bytes;
  }
  return o;
}

std::unique_ptr<bootstrap::channel> connect(const xio_init_attr_t* attr, const bootstrap_options& o) {
  const xio_init_attr_t a = read_attr(attr, "xio_init_attr_t");
  refuse_half_a_place(a);
  if (a.unique_id != nullptr) return bootstrap::connect_unique_id(o, {*a.unique_id, a.unique_rank, a.unique_size});
  if (a.mpi_comm != nullptr) return bootstrap::connect_mpi_comm(o, {a.mpi_comm, a.mpi_comm_bytes, a.mpi_kind});
  return bootstrap::connect(o);
}

options fallback_options(const xio_init_attr_t* attr) {
  xio_init_attr_t a{};
  std::vector<setting> given;
  try {
    a = read_attr(attr, "xio_init_attr_t");
    given = settings_of(a);
  } catch (const error&) {
    // The attributes are what is wrong; what else there is has to do.
  }
  options o = options::right_values(given);
  try {
    override_bootstrap(a, o);
  } catch (const error&) {
    // The bootstrap's name is wrong.
  }
  return o;
}

ctx_settings choose_ctx(const xio_ctx_attr_t* attr, const options& o) {
  const xio_ctx_attr_t a = read_attr(attr, "xio_ctx_attr_t");
  if (a.route < XIO_ROUTE_AUTO || a.route > XIO_ROUTE_SDMA)
    fail(XIO_ERR_CONFIG, "xio_ctx_attr_t.route is {}; use one of the xio_route_t values", static_cast<int>(a.route));
  ctx_settings c{};
  c.route = a.route != XIO_ROUTE_AUTO ? a.route : o.route;
  c.depth = a.ring_depth != 0 ? power_of_two("xio_ctx_attr_t.ring_depth", a.ring_depth, 4, 32768)
                              : power_of_two("XIO_RING_DEPTH", o.ring_depth, 4, 32768);
  if (o.ticket_start % c.depth != 0)
    fail(XIO_ERR_CONFIG, "XIO_TICKET_START={} is no multiple of the ring's depth {}; choose one that is",
         o.ticket_start, c.depth);
  c.pool = a.pool != 0 ? a.pool : static_cast<std::uint32_t>(o.ctx_pool);
  if (c.pool > 1024) fail(XIO_ERR_CONFIG, "xio_ctx_attr_t.pool is {}; use at most 1024", c.pool);
  c.queues = o.rdma_queues == 0 ? 0 : power_of_two("XIO_RDMA_QUEUES", o.rdma_queues, 1, 16);
  c.copy_queues = power_of_two("XIO_SDMA_QUEUES", o.sdma_queues, 1, 8);
  if (a.immediates != 0)
    c.immediates = power_of_two("xio_ctx_attr_t.immediates", a.immediates, wire::inbox::k_least_entries,
                                wire::inbox::k_most_entries);
  c.bulk_bytes = a.bulk_bytes != 0 ? a.bulk_bytes : o.sdma_threshold;
  return c;
}

xio_storage_attr_t choose_storage(const xio_storage_attr_t* attr, const nvme_options& o) {
  xio_storage_attr_t a = read_attr(attr, "xio_storage_attr_t");
  constexpr std::uint32_t known =
      XIO_STORAGE_READ_ONLY | XIO_STORAGE_CREATE | XIO_STORAGE_TRUNCATE | XIO_STORAGE_DIRECT;
  if ((a.flags & ~known) != 0)
    fail(XIO_ERR_CONFIG, "xio_storage_attr_t.flags is {:#x}; use XIO_STORAGE_ flags ({:#x}) only", a.flags, known);
  if ((a.flags & XIO_STORAGE_READ_ONLY) != 0 && (a.flags & (XIO_STORAGE_CREATE | XIO_STORAGE_TRUNCATE)) != 0)
    fail(XIO_ERR_ARG, "xio_storage_attr_t.flags asks for READ_ONLY and for CREATE or TRUNCATE; choose one");
  if (a.queues == 0) a.queues = 1;
  if (a.queues > dev::k_max_storage_queues)
    fail(XIO_ERR_CONFIG, "xio_storage_attr_t.queues is {}; use 1 to {}", a.queues, dev::k_max_storage_queues);
  a.depth = a.depth != 0 ? power_of_two("xio_storage_attr_t.depth", a.depth, 4, 4096)
                         : power_of_two("XIO_NVME_DEPTH", o.nvme_depth, 4, 4096);
  // 0 stays: a drive has blocks of its own, and a file chooses.
  if (a.block_bytes != 0) power_of_two("xio_storage_attr_t.block_bytes", a.block_bytes, 512, 65536);
  return a;
}

}  // namespace xio
