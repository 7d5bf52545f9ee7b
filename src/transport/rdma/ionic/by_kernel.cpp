// SPDX-License-Identifier: MIT
#include <atomic>
#include <cerrno>

#include "base/error.hpp"
#include "transport/rdma/ionic/abi.hpp"
#include "transport/rdma/ionic/maker.hpp"

namespace xio::rdma::ionic {

namespace {

namespace w = wire::ionic;

queue_description describe(const queue_memory& m, std::size_t entry_bytes) {
  const std::size_t entries = m.bytes / entry_bytes;
  return {reinterpret_cast<std::uint64_t>(m.at), static_cast<std::uint32_t>(m.bytes),
          static_cast<std::uint16_t>(entries - 1), static_cast<std::uint8_t>(log2_of(entries)),
          static_cast<std::uint8_t>(log2_of(entry_bytes))};
}

// On one pipeline of the NIC, a mask of one bit. The queue pair goes first.
class kernel_objects final : public queue_objects {
 public:
  kernel_objects(const uverbs::domain& owner, std::uint8_t pipeline) : owner_(owner), pipeline_(pipeline) {}
  ~kernel_objects() override {
    end_qp();
    uverbs::destroy_cq(owner_, &cq_[receives]);
    uverbs::destroy_cq(owner_, &cq_[sends]);
  }
  kernel_objects& operator=(kernel_objects&&) = delete;

  void end_qp() noexcept override { uverbs::destroy_qp(owner_, &qp_); }
  int modify(const uverbs::modify_qp& m) override { return owner_.modify(qp_, m); }
  int make_cq(side which, std::uint32_t, const queue_memory& m) override {
    const auto place = log2_of(pipeline_);
    cq_request wanted{};
    const queue_description& memory = wanted.queues[place] = describe(m, w::k_cqe_bytes);
    wanted.pipelines = pipeline_;
    cq_response made{};
    const std::uint32_t entries = memory.mask - k_cq_spare;
    std::uint32_t given = 0;
    uverbs::call c(uverbs::obj_cq, uverbs::cq::create);
    c.make(uverbs::cq::handle).in(uverbs::cq::entries, entries).in(uverbs::cq::user_handle, std::uint64_t{0});
    c.in(uverbs::cq::vector, std::uint32_t{0}).out(uverbs::cq::entries_made, &given);
    uverbs::add(c, {&wanted, sizeof wanted, &made, sizeof made});
    const int err = owner_.run(c);
    if (err != 0) return err;
    cq_[which] = c.made(uverbs::cq::handle);
    cq_number[which] = made.numbers[place];
    return made.pipelines == pipeline_ ? 0 : EPROTO;
  }
  int make_qp(std::uint32_t, const queue_memory& send, const queue_memory& receive) override {
    qp_request wanted{};
    wanted.sends = describe(send, w::k_wqe_bytes);
    wanted.receives = describe(receive, k_receive_bytes);
    wanted.pipelines = pipeline_;
    qp_response made{};
    const uverbs::queue_capacity capacity{wanted.sends.mask, wanted.receives.mask, k_spans, 1, w::k_inline_bytes};
    uverbs::queue_capacity given{};
    std::uint32_t number = 0;
    uverbs::call c(uverbs::obj_qp, uverbs::qp::create);
    c.make(uverbs::qp::handle).use(uverbs::qp::pd, owner_.pd()).use(uverbs::qp::send_cq, cq_[sends]);
    c.use(uverbs::qp::receive_cq, cq_[cq_[receives] != 0 ? receives : sends])
        .in(uverbs::qp::user_handle, std::uint64_t{0})
        .in(uverbs::qp::capacity, capacity);
    c.choose(uverbs::qp::type, uverbs::qp::k_reliable).out(uverbs::qp::capacity_made, &given);
    c.out(uverbs::qp::number, &number);
    uverbs::add(c, {&wanted, sizeof wanted, &made, sizeof made});
    const int err = owner_.run(c);
    if (err != 0) return err;
    qp_ = c.made(uverbs::qp::handle);
    qp_number = made.number;
    return made.pipeline == log2_of(pipeline_) ? 0 : EPROTO;
  }

 private:
  const uverbs::domain& owner_;
  const std::uint8_t pipeline_;
  std::uint32_t qp_ = 0, cq_[2] = {};  // handles
};

class kernel_maker final : public maker {
 public:
  kernel_maker(const std::string& device, const std::string& file) {
    const context_request wanted{};
    context_response r{};
    owner_ = std::make_unique<uverbs::domain>(device, file, uverbs::driver_ionic,
                                              uverbs::driver_data{&wanted, sizeof wanted, &r, sizeof r},
                                              uverbs::driver_data{});
    pipelines_ = r.pipelines;
    if (r.version == 0 || r.pipelines == 0)
      fail(XIO_ERR_UNSUPPORTED, "{}", lacking(device, "RDMA on this NIC's firmware"));
    const bool has_page = r.page_shift >= 12 && r.page_shift <= 16;
    facts_ = {
        has_page ? std::size_t{1} << r.page_shift : 0, r.doorbell_offset, r.sq_type, r.rq_type, r.cq_type, r.version};
    if (r.pipelines > k_most_pipelines || !is_possible())
      fail(XIO_ERR_UNSUPPORTED, "{}", lacking(device, "queues that this XIO knows"));
  }
  // Queue pairs take turns on the pipelines.
  std::unique_ptr<queue_objects> begin() override {
    return std::make_unique<kernel_objects>(*owner_, static_cast<std::uint8_t>(1u << (pairs_++ % pipelines_)));
  }
  std::shared_ptr<void> own_page() override { return owner_->map_page(0, facts_.page); }
  uverbs::domain* owner() override { return owner_.get(); }

 private:
  std::unique_ptr<uverbs::domain> owner_;
  std::uint32_t pipelines_ = 0;
  std::atomic<std::uint32_t> pairs_ = 0;
};

}  // namespace

std::unique_ptr<maker> make_by_kernel(const std::string& device, const std::string& file) {
  return std::make_unique<kernel_maker>(device, file);
}

std::string lacking(const std::string& device, const std::string& what) {
  return fmt::format(
      "RDMA device {}: the ionic driver of Linux {} has no {}; queues that kernels drive want ionic_rdma of Linux 6.18 "
      "or newer and firmware with RDMA",
      device, uverbs::kernel_release(), what);
}

}  // namespace xio::rdma::ionic
