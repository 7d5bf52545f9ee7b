// SPDX-License-Identifier: MIT
#include "tools/member.hpp"
#include "base/error.hpp"

namespace xio::tools {

void checked(xio_status_t status) {
  if (status != XIO_OK) fail(status, "{}", std::string(xio_last_error()));
}

member::member(std::size_t heap_bytes) {
  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.heap_bytes = heap_bytes;
  checked(xio_init(&attr, &world_));
  const xio_status_t made = xio_ctx_create(world_, nullptr, &ctx_);
  if (made == XIO_OK) return;
  const std::string why = xio_last_error();
  xio_finalize(world_);
  fail(made, "{}", why);
}

member::~member() {
  xio_ctx_destroy(world_, ctx_);
  xio_finalize(world_);
}

std::string member::route(int pe, std::size_t bytes) const {
  const char* name = xio_route_name(world_, ctx_, bytes, pe);
  return name == nullptr ? "none" : name;
}

std::string member::failure() const {
  xio_error_info_t info = XIO_ERROR_INFO_INIT;
  if (xio_ctx_error(world_, ctx_, &info) != XIO_OK || info.status == XIO_OK) return "";
  return std::string(": ") + info.sentence;
}

}  // namespace xio::tools
