// SPDX-License-Identifier: MIT
#include "uverbs/kernel/context.hpp"

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace uverbs {

bool is_mapped(std::uint64_t at, std::uint64_t bytes) {
  constexpr std::uint64_t k_page = 4096;
  if (bytes == 0 || at + bytes < at) return false;
  const std::uint64_t first = at & ~(k_page - 1), last = (at + bytes + k_page - 1) & ~(k_page - 1);
  std::vector<unsigned char> there((last - first) / k_page);
  return mincore(reinterpret_cast<void*>(first), last - first, there.data()) == 0;
}

unsigned char* map_dmabuf(int fd, std::uint64_t offset, std::uint64_t bytes) {
  struct stat s {};
  if (bytes == 0 || fstat(fd, &s) != 0 || offset + bytes > static_cast<std::uint64_t>(s.st_size)) return nullptr;
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
  return at == MAP_FAILED ? nullptr : static_cast<unsigned char*>(at);
}

void* context::map(std::uint64_t offset, std::uint64_t bytes, int, int flags) {
  const auto hold = device_.lock();
  auto page = static_cast<std::uint32_t>(offset >> k_shift);
  if (device_.chosen().nic == nic_kind::ionic && page == 0) page = own_page_;
  void* at = MAP_FAILED;
  errno = EINVAL;
  if (bytes != 1u << k_shift || (flags & MAP_SHARED) == 0 || !device_.has_uar(page)) return MAP_FAILED;
  if ((at = map_doorbell_page(page)) == nullptr) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return at;
}

context::~context() {
  const auto hold = device_.lock();
  for (auto i = objects_.rbegin(); i != objects_.rend(); ++i) end(i->second);
  if (own_page_ != 0) device_.remove_page(own_page_);
}

std::uint32_t context::keep(object o) {
  objects_.emplace(next_, o);
  return next_++;
}

context::object* context::find(std::uint64_t handle, kind what) {
  const auto found = objects_.find(static_cast<std::uint32_t>(handle));
  return found == objects_.end() || found->second.what != what ? nullptr : &found->second;
}

int context::end(object& o) {
  switch (o.what) {
    case kind::domain: device_.remove_domain(o.id); break;
    case kind::memory: device_.keys().remove(o.id); break;
    case kind::umem: device_.remove_umem(o.id); break;
    case kind::page: revoke_doorbell_page(o.id), device_.remove_page(o.id); break;
    case kind::address:
    case kind::queue: break;
    case kind::pair: device_.stop(o.id); break;
    case kind::command: {
      unsigned char reply[16];
      if (device_.processor().execute(o.destroy.data(), o.destroy.size(), reply, sizeof reply)) return EREMOTEIO;
      break;
    }
  }
  return 0;
}

int context::remove(std::uint32_t handle, kind what) {
  object* o = find(handle, what);
  if (o == nullptr) return ENOENT;
  if (o->users != 0) return EBUSY;
  if (const int err = end(*o); err != 0) return err;
  const bool has_parent = what == kind::memory || what == kind::pair;
  if (object* parent = find(o->parent, kind::domain); has_parent && parent != nullptr) --parent->users;
  if (what == kind::pair) {
    --find(o->cq, kind::queue)->users;
    --find(o->receive_cq, kind::queue)->users;
    if (object* page = find(o->page, kind::page); page != nullptr) --page->users;
  }
  objects_.erase(handle);
  return 0;
}

int context::handle(const call& c) {
  const auto hold = device_.lock();
  if (c.object() == UVERBS_OBJECT_DEVICE) return on_device(c);
  if (c.object() == UVERBS_OBJECT_ASYNC_EVENT || !ready_) return EPROTONOSUPPORT;
  switch (c.object()) {
    case UVERBS_OBJECT_PD:
      return c.method() == UVERBS_METHOD_PD_DESTROY
                 ? remove(static_cast<std::uint32_t>(c.value(UVERBS_ATTR_DESTROY_PD_HANDLE)), kind::domain)
                 : EPROTONOSUPPORT;
    case UVERBS_OBJECT_MR:
      return c.method() == UVERBS_METHOD_MR_DESTROY
                 ? remove(static_cast<std::uint32_t>(c.value(UVERBS_ATTR_DESTROY_MR_HANDLE)), kind::memory)
                 : EOPNOTSUPP;
    case UVERBS_OBJECT_AH:
      return c.method() == UVERBS_METHOD_AH_DESTROY
                 ? remove(static_cast<std::uint32_t>(c.value(UVERBS_ATTR_DESTROY_AH_HANDLE)), kind::address)
                 : EPROTONOSUPPORT;
    case 18: return export_page(c);  // UVERBS_OBJECT_DMABUF
    default: break;
  }
  if (device_.chosen().nic == nic_kind::bnxt) return on_bnxt(c);
  if (device_.chosen().nic == nic_kind::ionic) return on_ionic(c);
  switch (c.object()) {
    case MLX5_IB_OBJECT_DEVX: return on_devx(c);
    case MLX5_IB_OBJECT_DEVX_OBJ: return on_devx_object(c);
    case MLX5_IB_OBJECT_DEVX_UMEM: return on_umem(c);
    case MLX5_IB_OBJECT_UAR: return on_page(c);
    default: return EPROTONOSUPPORT;
  }
}

int context::on_bnxt(const call& c) {
  constexpr std::uint16_t k_bnxt_page = 0x1003;
  switch (c.object()) {
    case UVERBS_OBJECT_CQ: return bnxt_cq(c);
    case UVERBS_OBJECT_QP: return bnxt_qp(c);
    case k_bnxt_page: return bnxt_page(c);
    default: return EPROTONOSUPPORT;
  }
}

int context::on_ionic(const call& c) {
  switch (c.object()) {
    case UVERBS_OBJECT_CQ: return ionic_cq(c);
    case UVERBS_OBJECT_QP: return ionic_qp(c);
    default: return EPROTONOSUPPORT;
  }
}

}  // namespace uverbs
