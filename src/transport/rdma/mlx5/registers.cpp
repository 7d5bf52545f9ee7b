// SPDX-License-Identifier: MIT
#include "transport/rdma/mlx5/registers.hpp"

#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "transport/rdma/uverbs/call.hpp"

namespace xio::rdma {

namespace {

// Firmware's page of registers (rdma-core providers/mlx5/mlx5.h: MLX5_ADAPTER_PAGE_SIZE).
constexpr std::size_t k_register_page = 4096;
// MLX5DV_UAR_ALLOC_TYPE_NC_DEDICATED of rdma-core 45 (providers/mlx5/mlx5dv.h), by its value: the library that runs may
// be newer than the headers of the build.
constexpr std::uint32_t k_own_uncached = 1u << 31;

// As this process sees it; a GPU may see it elsewhere.
void* page_of(const mlx5dv_devx_uar& uar) {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(uar.reg_addr) & ~(k_register_page - 1));
}

// By the system call itself (Linux 7.2, drivers/infiniband/core/uverbs_std_types_dmabuf.c): libmlx5 has it since 1.26.
gpu::exported_memory export_page(const ibv_context& context, const mlx5dv_devx_uar& uar) {
  constexpr std::uint16_t k_dmabuf_object = 18, k_alloc = 0, k_file = 0, k_offset = 1;
  uverbs::call c(k_dmabuf_object, k_alloc);
  c.make(k_file).in(k_offset, static_cast<std::uint64_t>(uar.mmap_off));
  const int err = c.run(context.cmd_fd, 1);  // RDMA_DRIVER_MLX5
  if (err == 0) return {static_cast<int>(c.made(k_file))};
  return {-1, 0, "mlx5_ib exports no doorbell page (" + errno_text(err) + "); Linux 7.2 is the first that does"};
}

}  // namespace

mlx5_register::mlx5_register(mlx5_registers& of, mlx5dv_devx_uar* uar, void* kernels_page)
    : of_(of),
      uar_(uar),
      doorbell_(
          reinterpret_cast<std::uint64_t*>(static_cast<unsigned char*>(kernels_page) +
                                           (reinterpret_cast<std::uintptr_t>(uar->reg_addr) & (k_register_page - 1)))) {
}

mlx5_register::~mlx5_register() {
  if (of_.unmap(page_of(*uar_))) mlx5dv_devx_free_uar(uar_);
}

void* mlx5_registers::map(const mlx5dv_devx_uar& uar) {
  void* const at = page_of(uar);
  page& p = pages_[at];
  const gpu::register_export as{[&] { return export_page(*port_.context, uar); }, true};
  if (p.users == 0) p.kernels = hooks_.map_registers ? hooks_.map_registers(at, k_register_page, as) : at;
  if (p.kernels == nullptr) {
    pages_.erase(at);
    return nullptr;
  }
  ++p.users;
  return p.kernels;
}

bool mlx5_registers::unmap(void* at) {
  const std::lock_guard hold(lock_);
  page& p = pages_.at(at);
  if (--p.users != 0) return true;
  pages_.erase(at);
  return !hooks_.unmap_registers || hooks_.unmap_registers(at);
}

std::shared_ptr<mlx5_register> mlx5_registers::add(mlx5dv_devx_uar* uar) {
  void* kernels = map(*uar);
  if (kernels == nullptr) {
    mlx5dv_devx_free_uar(uar);
    return nullptr;
  }
  const auto made = std::make_shared<mlx5_register>(*this, uar, kernels);
  given_.push_back(made);
  return made;
}

std::shared_ptr<mlx5_register> mlx5_registers::least_shared() {
  std::erase_if(given_, [](const auto& r) { return r.expired(); });
  const auto fewest =
      std::ranges::min_element(given_, [](const auto& a, const auto& b) { return a.use_count() < b.use_count(); });
  return fewest == given_.end() ? nullptr : fewest->lock();
}

// Uncached stores only: kernels write 8 bytes and no more (MLX5DV_UAR_ALLOC_TYPE_NC, rdma-core 31). A library that is
// older than 45 refuses registers of our own, and has one for all of a context.
std::shared_ptr<mlx5_register> mlx5_registers::take() {
  const std::lock_guard hold(lock_);
  ibv_context* context = port_.context.get();
  if (mlx5dv_devx_uar* own = mlx5dv_devx_alloc_uar(context, k_own_uncached); own != nullptr)
    if (auto made = add(own)) return made;
  if (auto shared = least_shared()) return shared;
  mlx5dv_devx_uar* common = mlx5dv_devx_alloc_uar(context, MLX5DV_UAR_ALLOC_TYPE_NC);
  if (common == nullptr)
    fail(XIO_ERR_UNSUPPORTED,
         "RDMA device {} port {} gives no uncached doorbell page: {}; queues that kernels drive want mlx5_ib of Linux "
         "5.7 or newer and a NIC whose doorbell pages are not used up",
         port_.identity.device, port_.identity.port, errno_text(errno));
  if (auto made = add(common)) return made;
  fail(XIO_ERR_UNSUPPORTED, "the GPU cannot map the doorbell page of RDMA device {}", port_.identity.device);
}

}  // namespace xio::rdma
