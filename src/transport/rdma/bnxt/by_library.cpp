// SPDX-License-Identifier: MIT
#include <array>
#include <bit>
#include <cerrno>

#include "base/error.hpp"
#include "transport/rdma/bnxt/library.hpp"
#include "transport/rdma/bnxt/maker.hpp"
#include "transport/rdma/bnxt/receives.hpp"
#include "transport/rdma/direct/vendor_library.hpp"
#include "xio/wire/bnxt.hpp"

namespace xio::rdma::bnxt {

namespace {

namespace w = wire::bnxt;

// The library's table has half an entry for each slot of 16 bytes.
constexpr std::uint32_t k_table_log2 = std::countr_zero(w::k_wqe_slots / 2);
constexpr std::uint32_t k_most_number = (1u << 20) - 1;  // of a queue in a doorbell

class library_maker final : public maker {
 public:
  library_maker(ibv_context* context, ibv_pd* domain, std::string* path) : context_(context), domain_(domain) {
    const library_call names[] = {{"bnxt_re_dv_umem_reg", &call.umem_reg},
                                  {"bnxt_re_dv_umem_dereg", &call.umem_dereg},
                                  {"bnxt_re_dv_create_cq", &call.create_cq},
                                  {"bnxt_re_dv_destroy_cq", &call.destroy_cq},
                                  {"bnxt_re_dv_create_qp", &call.create_qp},
                                  {"bnxt_re_dv_destroy_qp", &call.destroy_qp},
                                  {"bnxt_re_dv_modify_qp", &call.modify_qp},
                                  {"bnxt_re_dv_init_obj", &call.init_obj},
                                  {"bnxt_re_dv_get_default_db_region", &call.get_default_db_region},
                                  {"bnxt_re_dv_alloc_db_region", &call.alloc_db_region, false},
                                  {"bnxt_re_dv_free_db_region", &call.free_db_region, false}};
    static constexpr const char* k_files[] = {"libbnxt_re.so", "libbnxt_re-rdmav59.so", "libbnxt_re-rdmav34.so"};
    const std::string found = find_library_calls(context, names, k_files);
    if (path != nullptr) *path = found;
    errno = 0;
    const int err = errno_of(call.get_default_db_region(context, &region_));
    if (err != 0 || !is_page(region_.page))
      fail(XIO_ERR_UNSUPPORTED, "RDMA device {}: {} gives no doorbell page of its context: {}", name(), found,
           err != 0 ? errno_text(err) : "its address is none of a page");
  }
  std::unique_ptr<queue_objects> begin() override;
  // The context's, which ends with it.
  std::shared_ptr<void> own_page() override { return {std::shared_ptr<void>(), region_.page}; }
  std::uint32_t table_log2() const override { return k_table_log2; }

  static bool is_page(const void* at) { return at != nullptr && reinterpret_cast<std::uint64_t>(at) % k_page == 0; }
  const char* name() const { return ibv_get_device_name(context_->device); }
  ibv_context* context() const { return context_; }
  ibv_pd* domain() const { return domain_; }

  dv::calls call{};

 private:
  ibv_context* const context_;
  ibv_pd* const domain_;
  dv::region region_{};
};

// The queue pair goes first, then completion queues, then the memory of all, and its page.
class library_objects final : public queue_objects {
 public:
  explicit library_objects(library_maker& from) : from_(from), call_(from.call) {}
  ~library_objects() override {
    end_qp();
    for (ibv_cq* cq : cq_)
      if (cq != nullptr) call_.destroy_cq(cq);
    for (void* umem : umems_)
      if (umem != nullptr) call_.umem_dereg(umem);
  }
  library_objects& operator=(library_objects&&) = delete;

  int make_page() override {
    if (call_.alloc_db_region == nullptr || call_.free_db_region == nullptr) {
      page = from_.own_page();
      return 0;
    }
    errno = 0;
    region_ = call_.alloc_db_region(from_.context());
    if (region_ == nullptr) return errno_of_null();
    page = {region_->page, [call = &call_, context = from_.context(), region = region_](void*) {
              call->free_db_region(context, region);
            }};
    return library_maker::is_page(page.get()) ? 0 : EPROTO;
  }
  int make_cq(side which, std::uint32_t entries, const queue_memory& memory) override {
    dv::cq_attr wanted{0, nullptr, 0, entries, 0};
    if (const int err = pin(memory, &wanted.umem); err != 0) return err;
    ibv_cq* const cq = cq_[which] = call_.create_cq(from_.context(), &wanted);
    if (cq == nullptr) return errno_of_null();
    // A library of another version may write more.
    struct {
      dv::cq_facts made;
      unsigned char more[64];
    } out{};
    dv::object_pairs pairs{};
    pairs.of[1] = {cq, &out.made};
    if (const int err = errno_of(call_.init_obj(&pairs, dv::k_of_cq)); err != 0) return err;
    cq_number[which] = out.made.number;
    return out.made.number <= k_most_number && out.made.entry_bytes == w::k_cqe_bytes ? 0 : EPROTO;
  }
  // Sizes by the rule of the library's own bnxt_re_dv_qp_mem_alloc for entries of 8 slots, which MORI has, too: a
  // handle of 0 says that they are ours.
  int make_qp(std::uint32_t depth, const queue_memory& send, const queue_memory& receive) override {
    dv::qp_attr a{};
    a.type = IBV_QPT_RC;
    a.sends = depth;
    a.receives = bnxt::receives::k_entries;
    a.send_spans = w::k_max_sges;
    a.receive_spans = bnxt::receives::k_spans;
    a.inline_bytes = w::k_inline_bytes;
    a.send_cq = cq_[sends];
    a.receive_cq = cq_[cq_[receives] != nullptr ? receives : sends];
    a.page = region_;
    a.send_bytes = static_cast<std::uint32_t>(send.bytes);
    a.send_slots = depth * w::k_wqe_slots;
    a.send_entry_bytes = a.receive_entry_bytes = w::k_wqe_bytes;
    a.msn_bytes = sizeof(std::uint64_t);
    a.msn_entries = depth << k_table_log2;
    a.receive_bytes = static_cast<std::uint32_t>(receive.bytes);
    a.receive_slots = a.receives * bnxt::receives::k_entry_slots;
    if (const int err = pin(send, &a.send_umem); err != 0) return err;
    if (const int err = pin(receive, &a.receive_umem); err != 0) return err;
    qp_ = call_.create_qp(from_.domain(), &a);
    if (qp_ == nullptr) return errno_of_null();
    qp_number = qp_->qp_num;
    return qp_number <= k_most_number ? 0 : EPROTO;
  }
  int modify(const uverbs::modify_qp& m) override {
    ibv_qp_attr attributes = attributes_of(m);
    errno = 0;
    return errno_of(call_.modify_qp(qp_, &attributes, static_cast<int>(m.mask), 0, 0));
  }
  void end_qp() noexcept override {
    if (qp_ != nullptr) call_.destroy_qp(qp_);
    qp_ = nullptr;
  }

 private:
  int pin(const queue_memory& m, void** to) {
    dv::umem_attr wanted{m.at, m.bytes, IBV_ACCESS_LOCAL_WRITE, 0, k_page, 0, -1, 0};
    if (m.file.fd >= 0) {
      wanted.address = reinterpret_cast<void*>(m.file.offset);
      wanted.mask = dv::k_umem_file;
      wanted.file = m.file.fd;
    }
    errno = 0;
    *to = call_.umem_reg(from_.context(), &wanted);
    if (*to == nullptr) return errno_of_null();
    umems_[pinned_++] = *to;
    errno = 0;
    return 0;
  }

  library_maker& from_;
  const dv::calls& call_;
  dv::region* region_ = nullptr;  // null: the context's page
  ibv_cq* cq_[2] = {};
  ibv_qp* qp_ = nullptr;
  std::array<void*, 4> umems_{};
  std::size_t pinned_ = 0;
};

std::unique_ptr<queue_objects> library_maker::begin() { return std::make_unique<library_objects>(*this); }

}  // namespace

std::unique_ptr<maker> make_by_library(ibv_context* context, ibv_pd* domain, std::string* path) {
  return std::make_unique<library_maker>(context, domain, path);
}

}  // namespace xio::rdma::bnxt
