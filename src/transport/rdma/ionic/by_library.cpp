// SPDX-License-Identifier: MIT
#include <atomic>
#include <cerrno>
#include <mutex>
#include <vector>

#include "base/error.hpp"
#include "transport/rdma/direct/vendor_library.hpp"
#include "transport/rdma/ionic/abi.hpp"
#include "transport/rdma/ionic/library.hpp"
#include "transport/rdma/ionic/maker.hpp"

namespace xio::rdma::ionic {

namespace {

namespace w = wire::ionic;

constexpr std::size_t k_page = 4096;
// Of drivers that have a library of their own: the older interface 1 came before it.
constexpr std::uint16_t k_version = 2;

// A domain whose queues are on one pipeline of the NIC and lie in memory of ours.
class pipeline_domain {
 public:
  pipeline_domain(const dv::calls& call, ibv_context* context, ibv_pd* parent, std::uint8_t pipeline) {
    ibv_parent_domain_init_attr wanted{};
    wanted.pd = parent;
    wanted.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
    wanted.alloc = [](ibv_pd*, void* self, std::size_t bytes, std::size_t alignment, std::uint64_t type) {
      return static_cast<pipeline_domain*>(self)->give(bytes, alignment, type);
    };
    wanted.free = [](ibv_pd*, void*, void*, std::uint64_t) {};
    wanted.pd_context = this;
    errno = 0;
    domain_ = ibv_alloc_parent_domain(context, &wanted);
    err_ = domain_ == nullptr ? errno_of_null() : 0;
    if (err_ == 0) err_ = errno_of(call.pd_set_sqcmb(domain_, false, false, false));
    if (err_ == 0) err_ = errno_of(call.pd_set_rqcmb(domain_, false, false, false));
    if (err_ == 0) err_ = errno_of(call.pd_set_udma_mask(domain_, static_cast<std::uint8_t>(1u << pipeline)));
  }
  ~pipeline_domain() {
    if (domain_ != nullptr) ibv_dealloc_pd(domain_);
  }
  pipeline_domain& operator=(pipeline_domain&&) = delete;
  int error() const { return err_; }

  // Runs `make` with the domain, whose rings get this memory: of a CQ, of sends, of receives. Returns its object.
  template <class Make>
  auto with(std::initializer_list<std::pair<dv::memory_of, const queue_memory*>> memory, Make&& make) {
    const std::lock_guard hold(lock_);
    offered_ = memory;
    errno = 0;
    auto* made = make(domain_);
    offered_.clear();
    return made;
  }

 private:
  void* give(std::size_t bytes, std::size_t alignment, std::uint64_t type) {
    // The library has memory of its own for all else.
    if ((type & UINT32_MAX) > dv::of_receives) return IBV_ALLOCATOR_USE_DEFAULT;
    for (const auto& [what, memory] : offered_)
      if (type == (dv::k_driver << 32 | what) && bytes <= memory->bytes && alignment != 0 &&
          reinterpret_cast<std::uint64_t>(memory->at) % alignment == 0)
        return memory->at;
    return nullptr;
  }

  std::mutex lock_;
  std::vector<std::pair<dv::memory_of, const queue_memory*>> offered_;
  ibv_pd* domain_ = nullptr;
  int err_ = 0;
};

// Whether the ring is in that memory, with entries of that size that fill it, and a number of 24 bits.
bool is_of(const dv::ring& r, const queue_memory& m, std::size_t entry_bytes) {
  const std::size_t entries = m.bytes / entry_bytes;
  return r.doorbell >> 2 * dv::k_number_shift == 0 && r.at == m.at && r.mask == entries - 1 &&
         r.depth_log2 == log2_of(entries) && r.stride_log2 == log2_of(entry_bytes);
}

class library_objects final : public queue_objects {
 public:
  library_objects(const dv::calls& call, pipeline_domain& domain, ibv_context* context, std::uint8_t pipeline)
      : call_(call), domain_(domain), context_(context), pipeline_(pipeline) {}
  ~library_objects() override {
    end_qp();
    for (ibv_cq* cq : cq_)
      if (cq != nullptr) ibv_destroy_cq(cq);
  }
  library_objects& operator=(library_objects&&) = delete;

  int make_cq(side which, std::uint32_t entries, const queue_memory& memory) override {
    ibv_cq_ex* const made = domain_.with({{dv::of_cq, &memory}}, [&](ibv_pd* domain) {
      ibv_cq_init_attr_ex wanted{};
      wanted.cqe = entries - 1 - k_cq_spare;
      wanted.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
      wanted.parent_domain = domain;
      return ibv_create_cq_ex(context_, &wanted);
    });
    if (made == nullptr) return errno_of_null();
    cq_[which] = ibv_cq_ex_to_cq(made);
    dv::ring r{};
    if (const int err = errno_of(call_.get_cq(&r, cq_[which], pipeline_)); err != 0) return err;
    cq_number[which] = static_cast<std::uint32_t>(r.doorbell >> dv::k_number_shift);
    return is_of(r, memory, w::k_cqe_bytes) ? 0 : EPROTO;
  }
  int make_qp(std::uint32_t depth, const queue_memory& send, const queue_memory& receive) override {
    qp_ = domain_.with({{dv::of_sends, &send}, {dv::of_receives, &receive}}, [&](ibv_pd* domain) {
      ibv_qp_init_attr_ex wanted{};
      wanted.send_cq = cq_[sends];
      wanted.recv_cq = cq_[cq_[receives] != nullptr ? receives : sends];
      wanted.cap = {depth - 1, static_cast<std::uint32_t>(receive.bytes / k_receive_bytes) - 1, k_spans, 1,
                    w::k_inline_bytes};
      wanted.qp_type = IBV_QPT_RC;
      wanted.comp_mask = IBV_QP_INIT_ATTR_PD;
      wanted.pd = domain;
      return ibv_create_qp_ex(context_, &wanted);
    });
    if (qp_ == nullptr) return errno_of_null();
    qp_number = qp_->qp_num;
    dv::pair_rings r{};
    if (const int err = errno_of(call_.get_qp(&r, qp_)); err != 0) return err;
    const bool good = call_.qp_get_udma_idx(qp_) == pipeline_ && r.sends.doorbell >> dv::k_number_shift == qp_number &&
                      is_of(r.sends, send, w::k_wqe_bytes) && is_of(r.receives, receive, k_receive_bytes);
    return good ? 0 : EPROTO;
  }
  int modify(const uverbs::modify_qp& m) override {
    ibv_qp_attr attributes = attributes_of(m);
    return errno_of(ibv_modify_qp(qp_, &attributes, static_cast<int>(m.mask)));
  }
  void end_qp() noexcept override {
    if (qp_ != nullptr) ibv_destroy_qp(qp_);
    qp_ = nullptr;
  }

 private:
  const dv::calls& call_;
  pipeline_domain& domain_;
  ibv_context* const context_;
  const std::uint8_t pipeline_;
  ibv_cq* cq_[2] = {};
  ibv_qp* qp_ = nullptr;
};

class library_maker final : public maker {
 public:
  library_maker(ibv_context* context, ibv_pd* domain, std::string* path) : context_(context) {
    const library_call names[] = {{"ionic_dv_get_ctx", &call_.get_ctx},
                                  {"ionic_dv_get_cq", &call_.get_cq},
                                  {"ionic_dv_get_qp", &call_.get_qp},
                                  {"ionic_dv_qp_get_udma_idx", &call_.qp_get_udma_idx},
                                  {"ionic_dv_pd_set_sqcmb", &call_.pd_set_sqcmb},
                                  {"ionic_dv_pd_set_rqcmb", &call_.pd_set_rqcmb},
                                  {"ionic_dv_pd_set_udma_mask", &call_.pd_set_udma_mask}};
    static constexpr const char* k_files[] = {"libionic.so", "libionic.so.1"};
    const std::string found = find_library_calls(context, names, k_files);
    if (path != nullptr) *path = found;
    dv::context_facts r{};
    int err = errno_of(call_.get_ctx(&r, context));
    page_ = r.page;
    facts_ = {k_page,    reinterpret_cast<std::uint64_t>(r.doorbells) - reinterpret_cast<std::uint64_t>(r.page),
              r.sq_type, r.rq_type,
              r.cq_type, k_version};
    if (err == 0 && (page_ == nullptr || !is_possible())) err = EPROTO;
    // A NIC has one pipeline or two.
    for (std::uint8_t i = 0; err == 0 && i < k_most_pipelines; ++i) {
      auto one = std::make_unique<pipeline_domain>(call_, context, domain, i);
      if (one->error() == EINVAL && i != 0) break;
      err = one->error();
      domains_.push_back(std::move(one));
    }
    if (err != 0)
      fail(XIO_ERR_UNSUPPORTED,
           "RDMA device {}: {} gives no doorbells or domain for queues: {}; update it, and firmware",
           ibv_get_device_name(context->device), found, errno_text(err));
  }
  // Queue pairs take turns on the pipelines.
  std::unique_ptr<queue_objects> begin() override {
    const auto i = static_cast<std::uint8_t>(pairs_++ % domains_.size());
    return std::make_unique<library_objects>(call_, *domains_[i], context_, i);
  }
  // The context's, which ends with it.
  std::shared_ptr<void> own_page() override { return {std::shared_ptr<void>(), page_}; }

 private:
  ibv_context* const context_;
  dv::calls call_{};
  void* page_ = nullptr;
  std::vector<std::unique_ptr<pipeline_domain>> domains_;
  std::atomic<std::uint32_t> pairs_ = 0;
};

}  // namespace

std::unique_ptr<maker> make_by_library(ibv_context* context, ibv_pd* domain, std::string* path) {
  return std::make_unique<library_maker>(context, domain, path);
}

}  // namespace xio::rdma::ionic
