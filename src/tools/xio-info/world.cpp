// SPDX-License-Identifier: MIT
// The route table of a world: started as its PEs, each says which way its ops would go to every other.
#include <fmt/format.h>

#include "tools/backends.hpp"
#include "tools/member.hpp"
#include "tools/size_text.hpp"
#include "tools/xio-info/section.hpp"
#include "xio/memory.h"

namespace xio::info {
namespace {

constexpr std::size_t k_sizes[] = {8, 4096, 1u << 20, 1u << 28};

// Where symmetric memory is, as the system says and not as it was asked.
std::string heap_side(const tools::member& m) {
  void* block = nullptr;
  tools::checked(xio_malloc(m.world(), 64, &block));
  xio_mem_place_t place = XIO_MEM_PLACE_INIT;
  const xio_status_t looked = xio_mem_where(block, &place);
  tools::checked(xio_free(m.world(), block));
  tools::checked(looked);
  switch (place.side) {
    case XIO_MEM_ON_HOST: return "host memory";
    case XIO_MEM_ON_DEVICE: return "memory of the GPU";
    case XIO_MEM_ON_BOTH: return "memory that moves between host and GPU";
    case XIO_MEM_ON_UNKNOWN: break;
  }
  return "nobody says where";
}

}  // namespace

std::vector<section> world_sections() {
  const tools::member m;
  section s{fmt::format("pe{}", m.me()), fmt::format("Routes of PE {} of {}", m.me(), m.size()), {}};
  for (int pe = 0; pe < m.size(); ++pe)
    for (const std::size_t bytes : k_sizes)
      s.rows.push_back({fmt::format("pe{}_{}", pe, tools::text_of_size(bytes)), m.route(pe, bytes), ""});
  s.rows.push_back({"heap", heap_side(m), ""});
  for (const auto& [engine, backend] : tools::opened_backends()) s.rows.push_back({engine, backend, ""});
  return {s};
}

}  // namespace xio::info
