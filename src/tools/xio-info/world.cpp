// SPDX-License-Identifier: MIT
// The route table of a world: started as its PEs, each says which way its ops would go to every other.
#include "base/error.hpp"
#include "tools/backends.hpp"
#include "tools/size_text.hpp"
#include "tools/xio-info/section.hpp"
#include "xio/memory.h"
#include "xio/xio.h"

namespace xio::info {
namespace {

constexpr std::size_t k_sizes[] = {8, 4096, 1u << 20, 1u << 28};

void check(xio_status_t status) {
  if (status != XIO_OK) fail(status, "{}", xio_last_error());
}

// The world is closed on every path, an exception's too.
class member {
 public:
  member() {
    check(xio_init(nullptr, &world_));
    const xio_status_t made = xio_ctx_create(world_, nullptr, &ctx_);
    if (made == XIO_OK) return;
    const std::string why = xio_last_error();
    xio_finalize(world_);
    fail(made, "{}", why);
  }
  ~member() {
    if (world_ == nullptr) return;
    xio_ctx_destroy(world_, ctx_);
    xio_finalize(world_);
  }
  member& operator=(member&&) = delete;

  int me() const { return xio_my_pe(world_); }
  int size() const { return xio_n_pes(world_); }
  std::string route(int pe, std::size_t bytes) const {
    const char* name = xio_route_name(world_, ctx_, bytes, pe);
    return name == nullptr ? "none" : name;
  }
  // Where symmetric memory is, as the system says and not as it was asked.
  std::string heap_side() const {
    void* block = nullptr;
    check(xio_malloc(world_, 64, &block));
    xio_mem_place_t place = XIO_MEM_PLACE_INIT;
    const xio_status_t looked = xio_mem_where(block, &place);
    check(xio_free(world_, block));
    check(looked);
    switch (place.side) {
      case XIO_MEM_ON_HOST: return "host memory";
      case XIO_MEM_ON_DEVICE: return "memory of the GPU";
      case XIO_MEM_ON_BOTH: return "memory that moves between host and GPU";
      case XIO_MEM_ON_UNKNOWN: break;
    }
    return "nobody says where";
  }

 private:
  xio_world_t* world_ = nullptr;
  xio_ctx_t ctx_{};
};

}  // namespace

std::vector<section> world_sections() {
  const member m;
  section s{fmt::format("pe{}", m.me()), fmt::format("Routes of PE {} of {}", m.me(), m.size()), {}};
  for (int pe = 0; pe < m.size(); ++pe)
    for (const std::size_t bytes : k_sizes)
      s.rows.push_back({fmt::format("pe{}_{}", pe, tools::text_of_size(bytes)), m.route(pe, bytes), ""});
  s.rows.push_back({"heap", m.heap_side(), ""});
  for (const auto& [engine, backend] : tools::opened_backends()) s.rows.push_back({engine, backend, ""});
  return {s};
}

}  // namespace xio::info
