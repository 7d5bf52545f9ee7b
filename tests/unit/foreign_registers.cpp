// SPDX-License-Identifier: MIT
// Registers as dma-bufs: everything goes back in order when a call fails. tests/amdgpu/check shows the rest.
#include "gpu/foreign_registers.hpp"

#include "gpu/kfd_uapi.hpp"
#include "refusal.hpp"

namespace xio::gpu {
namespace {

struct fake_kernel final : kfd_kernel {
  std::string calls, fails;  // a letter for each call; v: HIP has no address space yet
  const unique_fd drm{memfd_create("dri/renderD128", 0)};

  int show(void*, std::size_t, int, std::uint64_t) noexcept override { return EINVAL; }
  int control(unsigned long request, void* a, int) noexcept override {
    if (request == kfd::k_acquire_vm) return 0;
    if (request == kfd::k_import_dmabuf && static_cast<kfd::import_dmabuf*>(a)->fd == ~0u)
      return fails == "v" ? ENODEV : EBADF;
    const bool maps = request == kfd::k_gem_va && static_cast<kfd::gem_va*>(a)->operation == 1;
    const std::map<unsigned long, char> letters{{kfd::k_prime_import, 'P'}, {kfd::k_gem_va, maps ? 'M' : 'U'},
                                                {kfd::k_gem_close, 'C'},    {kfd::k_import_dmabuf, 'i'},
                                                {kfd::k_map_memory, 'm'},   {kfd::k_unmap_memory, 'u'},
                                                {kfd::k_free_memory, 'f'}};
    calls += letters.at(request);
    return fails.find(calls.back()) == std::string::npos ? 0 : EINVAL;
  }
};

TEST(foreign_registers, give_back_what_they_had_when_a_call_fails) {
  const struct {
    bool pins;
    const char *fails, *calls;
    bool good = true;
    std::size_t bytes = page_size();
  } rows[] = {{true, "", "PMUC"},         {true, "P", "Pimuf"},   {true, "M", "PMCimuf"},
              {true, "U", "PMUC"},        {false, "", "imuf"},    {false, "i", "i", false},
              {false, "m", "imf", false}, {true, "v", "", false}, {true, "", "", false, 8}};
  for (const auto& row : rows) {
    fake_kernel kernel;
    kernel.fails = row.fails;
    unique_fd file(memfd_create("registers", MFD_CLOEXEC));
    EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(row.bytes)), 0);
    const auto map = [&] { import_registers(kernel, 1, std::move(file), page_size(), row.pins); };
    EXPECT_PAIRS((guard(map), row.good ? XIO_OK : XIO_ERR_UNSUPPORTED), (kernel.calls, row.calls));
  }
}

}  // namespace
}  // namespace xio::gpu
