// SPDX-License-Identifier: MIT
// A NIC whose queues kernels drive by themselves, with no host thread between: what the endpoint asks of each vendor's
// provider (mlx5, bnxt, ionic).
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "proxy/family.hpp"
#include "proxy/verbs_fabric.hpp"
#include "proxy/verbs_port.hpp"
#include "transport/rdma/verbs/inventory.hpp"

namespace xio::rdma {

// Where the immediates of one queue pair go.
class immediate_target {
 public:
  virtual ~immediate_target() = default;
  // False: there is no room, offer it again.
  virtual bool put(std::uint32_t immediate) = 0;
  // How many the peer may have sent by now, counted from its first: what was read, and what there is room for. At times
  // it is what it was before.
  virtual std::uint64_t most_sent() = 0;
};

// One queue pair and its rings.
class direct_queue {
 public:
  virtual ~direct_queue() = default;
  virtual const proxy::verbs_address& identity() const = 0;
  // RESET to RTS. Fields of the view that the path decides are set in it.
  virtual void connect(const proxy::verbs_address& remote, int pe, const proxy::verbs_path& path,
                       dev::ring_view& v) = 0;
  // The device reads and writes nothing of it any more.
  virtual void stop() noexcept = 0;
  // Hands over what has come in its order, and lets the peer send as many as there is room for. True if any was. Of
  // queue pairs that were made for it alone, and by one thread.
  virtual bool poll_receives(immediate_target&) { return false; }
  // Puts this process's own mapping of the doorbells into a view: kernels' may be another.
  virtual void take_host_doorbells(dev::ring_view& v) const = 0;
  // Sets slots, depth, kind, id, completion, doorbells and what else the family has. The first ticket is a multiple of
  // direct_format::count_from; `state` has tickets and credits, and gets the family's own words.
  virtual void fill(dev::ring_view& v, dev::ring_state& state) const = 0;
};

struct direct_format {
  const char* name;  // as XIO_NIC_FAMILY names it
  dev::ring_kind kind;
  std::uint32_t inline_bytes, gather_bytes;  // see dev::ring_view
  std::uint32_t most_cq_depth;               // as proxy::family has it
  std::uint64_t count_from;                  // queues count from 0, so tickets start at a multiple of this
  bool takes_immediates;                     // queue pairs can have a receive side
};

class direct_nic {
 public:
  virtual ~direct_nic() = default;
  virtual const proxy::verbs_address& identity() const = 0;
  virtual std::uint64_t max_message() const = 0;
  // The fabric that registers memory and tries it; null where the kernel's own calls do.
  virtual proxy::verbs_fabric* fabric() { return nullptr; }
  // Its port as it is now, asked of the kernel.
  virtual port_facts port() const = 0;
  // Reads the device's events now and then, for nobody else does. Called by one thread, again and again.
  virtual void poll_events() = 0;
  virtual bool has_failed() const = 0;
  virtual proxy::key_pair register_memory(void* base, std::uint64_t bytes, std::uint32_t allowed) = 0;
  virtual void unregister_memory(const proxy::key_pair& keys) = 0;
  // Entries that a queue of `wanted` has here: a device may need more.
  virtual std::uint32_t depth_of(std::uint32_t wanted) const { return wanted; }
  // cq_depth: 0 where the format keeps the last completion alone. receives: writes with immediate come.
  virtual std::unique_ptr<direct_queue> make_queue(std::uint32_t depth, std::uint32_t cq_depth, bool receives) = 0;

  proxy::device_address get_address() { return pack(identity()); }
  // Throws, naming the PE, where its port cannot be reached from this one.
  void connect_peers(const std::vector<proxy::device_address>& all);
  std::uint8_t forced_mtu = 0;  // as proxy::verbs_path::mtu
};

// The platform's part in such queues.
struct direct_hooks {
  // Lets kernels store to a page of device registers: the address to use, or null. On HIP that is hipHostRegister with
  // hipHostRegisterIoMemory. Without it kernels are taken to run on the processors, which see the page as it is.
  std::function<void*(void* page, std::size_t bytes, const gpu::register_export& as)> map_registers;
  std::function<bool(void* page)> unmap_registers;  // false: the page must stay
  // Where rings lie; for place::device their dma-buf is exported by the other.
  gpu::place rings = gpu::place::shared;
  proxy::memory_exporter export_memory;
};

// The queues of one vendor's devices.
struct direct_provider {
  direct_format format;
  // Why rings lie in host memory alone, or null.
  const char* rings_only_shared;
  // Whether that port's device is one of this vendor's.
  bool (*drives)(const proxy::verbs_port& port);
  // Throws, saying what the driver, the firmware or the platform lacks.
  std::unique_ptr<direct_nic> (*open)(const proxy::verbs_port& port, const proxy::verbs_path& path,
                                      const direct_hooks& hooks);
};

// The one for that port's device, or null.
const direct_provider* find_direct_provider(const proxy::verbs_port& port);

}  // namespace xio::rdma
