// SPDX-License-Identifier: MIT
// What every file of the C boundary does with a world that a program names.
#pragma once
#include "ctx/entry.hpp"
#include "ctx/job_picture.hpp"
#include "ctx/world.hpp"

struct xio_world {
  xio_world(xio::options o, std::unique_ptr<xio::bootstrap::channel> c) : impl(std::move(o), std::move(c)) {}
  xio::world impl;
};

namespace xio {

// Of a world between xio_init and xio_finalize; throws for any other pointer.
const world& checked(const xio_world_t* w, const char* function);
inline world& checked(xio_world_t* w, const char* function) {
  (void)checked(static_cast<const xio_world_t*>(w), function);
  return w->impl;
}

template <class World, class Body>
xio_status_t in_world(World* w, const char* function, Body&& body) noexcept {
  return entry(function, [&] {
    auto& impl = checked(w, function);
    const auto shown = impl.waits().enter(function);
    // Kept here, for the call may end the world.
    const std::uint64_t job = impl.members().job(), deadline_ms = impl.members().timeout_ms();
    try {
      body(impl);
    } catch (const error& e) {
      if (e.status() == XIO_ERR_TIMEOUT) info::show_once(job, deadline_ms);
      throw;
    }
  });
}

}  // namespace xio
