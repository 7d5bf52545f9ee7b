// SPDX-License-Identifier: MIT
// Send queues of an mlx5 device whose rings kernels write and whose doorbells kernels ring by themselves: made by
// firmware commands (DEVX) over memory of ours, with one collapsed completion entry, which dev::mlx5_codec reads. Needs
// libmlx5.
#pragma once
#include <optional>

#include "gpu/gpu.hpp"
#include "transport/rdma/mlx5/commands.hpp"
#include "transport/rdma/mlx5/receives.hpp"
#include "transport/rdma/mlx5/registers.hpp"
#include "xio/device/impl/view.hpp"

namespace xio::rdma {

// All queues of a port share this: its doorbell registers, and the numbers of the domain and event queue in commands.
class mlx5_port {
 public:
  // Throws, saying what the driver, the firmware or the platform lacks.
  mlx5_port(const proxy::verbs_port& port, direct_hooks hooks);
  mlx5_port& operator=(mlx5_port&&) = delete;

  const proxy::verbs_port& port() const { return port_; }
  const direct_hooks& hooks() const { return hooks_; }
  std::shared_ptr<mlx5_register> take_register();
  std::uint32_t domain() const { return domain_; }
  std::uint32_t event_queue() const { return event_queue_; }

 private:
  const proxy::verbs_port port_;
  const direct_hooks hooks_;
  std::uint32_t domain_ = 0, event_queue_ = 0;
  mlx5_registers registers_;
  std::shared_ptr<mlx5_register> first_;  // taken with the port, which is refused without, for its first queue pair
};

class mlx5_send_queue final : public direct_queue {
 public:
  // depth: slots of 64 bytes, a power of two, at most 32768.
  mlx5_send_queue(std::shared_ptr<mlx5_port> port, std::uint32_t depth, bool receives);

  const proxy::verbs_address& identity() const override { return mine_; }
  void connect(const proxy::verbs_address& remote, int pe, const proxy::verbs_path& path, dev::ring_view& v) override;
  void stop() noexcept override { qp_.reset(); }
  void take_host_doorbells(dev::ring_view& v) const override { v.rdma.doorbell = register_->host_doorbell(); }
  void fill(dev::ring_view& v, dev::ring_state& state) const override;
  bool poll_receives(immediate_target& to) override { return receives_ && receives_->poll(to); }

 private:
  struct take_back {
    void operator()(mlx5dv_devx_obj* o) const { mlx5dv_devx_obj_destroy(o); }
    void operator()(mlx5dv_devx_umem* u) const { mlx5dv_devx_umem_dereg(u); }
  };
  template <class T>
  using owned = std::unique_ptr<T, take_back>;

  owned<mlx5dv_devx_umem> share(unsigned char* from, std::size_t bytes);
  // On failure it throws, and keeps the firmware's reply where `why` is not null.
  owned<mlx5dv_devx_obj> make(const char* what, const mlx5::command& c, std::uint32_t* number,
                              mlx5::reply* why = nullptr);
  void make_all();
  void modify(const char* step, const mlx5::command& c);
  std::array<unsigned char, 6> mac_of(const proxy::verbs_address& remote, int pe, const proxy::verbs_path& path) const;

  const std::shared_ptr<mlx5_port> port_;
  const std::shared_ptr<mlx5_register> register_;
  const std::uint32_t depth_;
  proxy::verbs_address mine_;
  std::string ends_;
  // Receive ring, slots, completion entries, those of the receive ring, doorbell records; each from a page's start.
  struct layout {
    std::size_t slots, entries, receive_entries, records, end;
    layout(std::uint32_t depth, bool receives);
  };
  const layout parts_;
  const bool has_receives_;
  gpu::buffer memory_;
  std::optional<receive_queue<mlx5::receives>> receives_;
  owned<mlx5dv_devx_umem> slots_, entries_, receive_entries_, records_;
  owned<mlx5dv_devx_obj> cq_, receive_cq_, qp_;  // the queue pair goes first
};

const direct_provider& mlx5_provider();

}  // namespace xio::rdma
