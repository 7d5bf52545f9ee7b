// SPDX-License-Identifier: MIT
#include <cerrno>

#include "base/error.hpp"
#include "transport/rdma/bnxt/abi.hpp"
#include "transport/rdma/bnxt/maker.hpp"
#include "transport/rdma/bnxt/receives.hpp"
#include "xio/wire/bnxt.hpp"

namespace xio::rdma::bnxt {

namespace {

namespace w = wire::bnxt;

// A context with the doorbell page that its completion queues use.
class context {
 public:
  context(const std::string& device, const std::string& file) : owner_(open(device, file)) {}
  uverbs::domain& owner() const { return *owner_; }
  std::uint64_t own_page() const { return pd_.offset; }
  // Empty, or what the driver lacks, as far as it says.
  std::string lacks() const {
    if ((response_.mask & k_has_mode) == 0) return "entries of variable size (Linux 6.11)";
    if (response_.mode != k_mode_variable) return "entries of variable size on this NIC, which is older than Thor2";
    return (response_.mask & k_msn_table) == 0 ? "the host's MSN table: the NIC's firmware is too old" : "";
  }

 private:
  std::unique_ptr<uverbs::domain> open(const std::string& device, const std::string& file) {
    const context_request wanted{k_any_size | k_variable_entries};
    return std::make_unique<uverbs::domain>(device, file, uverbs::driver_bnxt,
                                            uverbs::driver_data{&wanted, sizeof wanted, &response_, sizeof response_},
                                            uverbs::driver_data{nullptr, 0, &pd_, sizeof pd_});
  }

  context_response response_{};
  pd_response pd_{};
  std::unique_ptr<uverbs::domain> owner_;
};

uverbs::buffer_description describe(const queue_memory& m) {
  if (m.file.fd >= 0) return {0, m.file.fd, 0, 0, m.file.offset, m.bytes};
  return {1, 0, 0, 0, reinterpret_cast<std::uint64_t>(m.at), m.bytes};
}

// The queue pair goes first, then its page.
class kernel_objects final : public queue_objects {
 public:
  explicit kernel_objects(const uverbs::domain& owner) : owner_(owner) {}
  ~kernel_objects() override {
    end_qp();
    uverbs::destroy_cq(owner_, &cq_[receives]);
    uverbs::destroy_cq(owner_, &cq_[sends]);
    page.reset();
    if (page_ == 0) return;
    uverbs::call c(k_page_object, page_free);
    c.use(page_handle, page_);
    owner_.run(c);
  }
  kernel_objects& operator=(kernel_objects&&) = delete;

  void end_qp() noexcept override { uverbs::destroy_qp(owner_, &qp_); }
  int modify(const uverbs::modify_qp& m) override { return owner_.modify(qp_, m); }
  int make_page() override {
    page_description made{};
    std::uint64_t offset = 0;
    uverbs::call c(k_page_object, page_alloc);
    c.make(page_handle).out(page_region, &made).out(page_offset, &offset);
    if (const int err = owner_.run(c); err != 0) return err;
    page_ = c.made(page_handle);
    page = owner_.map_page(offset, k_page);
    return page != nullptr ? 0 : errno;
  }
  int make_cq(side which, std::uint32_t entries, const queue_memory& memory) override {
    const uverbs::buffer_description buffer = describe(memory);
    const cq_request wanted{0, 0, k_cq_of_given_size};
    cq_response made{};
    std::uint32_t given = 0;
    uverbs::call c(uverbs::obj_cq, uverbs::cq::create);
    c.make(uverbs::cq::handle).in(uverbs::cq::entries, entries).in(uverbs::cq::user_handle, std::uint64_t{0});
    c.in(uverbs::cq::vector, std::uint32_t{0}).out(uverbs::cq::entries_made, &given).in(uverbs::cq::buffer, buffer);
    uverbs::add(c, {&wanted, sizeof wanted, &made, sizeof made});
    const int err = owner_.run(c);
    if (err != 0) return err;
    cq_[which] = c.made(uverbs::cq::handle);
    cq_number[which] = made.number;
    return given == entries ? 0 : EPROTO;
  }
  int make_qp(std::uint32_t depth, const queue_memory& send, const queue_memory& receive) override {
    const uverbs::buffer_description send_buffer = describe(send), receive_buffer = describe(receive);
    const qp_request wanted{0, 0, 0, k_qp_of_given_size, depth * w::k_wqe_slots, depth};
    qp_response made{};
    const uverbs::queue_capacity capacity{depth, bnxt::receives::k_entries, w::k_max_sges, bnxt::receives::k_spans,
                                          w::k_inline_bytes};
    uverbs::queue_capacity given{};
    std::uint32_t number = 0;
    uverbs::call c(uverbs::obj_qp, uverbs::qp::create);
    c.make(uverbs::qp::handle).use(uverbs::qp::pd, owner_.pd()).use(uverbs::qp::send_cq, cq_[sends]);
    c.use(uverbs::qp::receive_cq, cq_[cq_[receives] != 0 ? receives : sends])
        .in(uverbs::qp::user_handle, std::uint64_t{0})
        .in(uverbs::qp::capacity, capacity);
    c.choose(uverbs::qp::type, uverbs::qp::k_reliable).out(uverbs::qp::capacity_made, &given);
    c.out(uverbs::qp::number, &number)
        .in(uverbs::qp::send_buffer, send_buffer)
        .in(uverbs::qp::receive_buffer, receive_buffer);
    c.use(k_qp_page, page_);
    uverbs::add(c, {&wanted, sizeof wanted, &made, sizeof made});
    const int err = owner_.run(c);
    if (err != 0) return err;
    qp_ = c.made(uverbs::qp::handle);
    qp_number = made.number;
    return 0;
  }

 private:
  const uverbs::domain& owner_;
  std::uint32_t qp_ = 0, page_ = 0, cq_[2] = {};  // handles
};

class kernel_maker final : public maker {
 public:
  kernel_maker(const std::string& device, const std::string& file) : context_(device, file) {
    if (const std::string what = context_.lacks(); !what.empty())
      fail(XIO_ERR_UNSUPPORTED, "{}", too_old(device, what));
  }
  std::unique_ptr<queue_objects> begin() override { return std::make_unique<kernel_objects>(context_.owner()); }
  std::shared_ptr<void> own_page() override { return context_.owner().map_page(context_.own_page(), k_page); }
  std::uint32_t table_log2() const override { return 0; }
  uverbs::domain* owner() override { return &context_.owner(); }

 private:
  const context context_;
};

}  // namespace

std::unique_ptr<maker> make_by_kernel(const std::string& device, const std::string& file) {
  return std::make_unique<kernel_maker>(device, file);
}

std::string too_old(const std::string& device, const std::string& what) {
  return fmt::format("RDMA device {}: bnxt_re of Linux {} has no {}; queues that kernels drive want Linux 7.2 or newer",
                     device, uverbs::kernel_release(), what);
}

}  // namespace xio::rdma::bnxt
