// SPDX-License-Identifier: MIT
// The C boundary of xio/sdma.h.

#include <set>

#include "ctx/attributes.hpp"
#include "ctx/entry.hpp"
#include "ctx/rings.hpp"
#include "ctx/sdma_link.hpp"

struct xio_sdma_link {
  explicit xio_sdma_link(const xio_sdma_link_attr_t* attr) : impl(attr) {}
  xio::sdma_link impl;
};

namespace {

using xio::entry;
using xio::fail;
using xio::not_null;

// Links between connect and disconnect: a pointer that is not here is refused before it is followed.
class live_links {
 public:
  void add(xio_sdma_link_t* l) {
    const std::lock_guard hold(lock_);
    all_.insert(l);
  }
  bool has(const xio_sdma_link_t* l) {
    const std::lock_guard hold(lock_);
    return all_.count(l) != 0;
  }
  void remove(const xio_sdma_link_t* l) {
    const std::lock_guard hold(lock_);
    all_.erase(l);
  }

 private:
  std::mutex lock_;
  std::set<const xio_sdma_link_t*> all_;
};

live_links& links() {
  // Never destroyed: programs may call from destructors of their own statics.
  static auto* one = new live_links;
  return *one;
}

template <class Link, class Body>
xio_status_t on_link(Link* l, const char* function, Body&& body) noexcept {
  return entry(function, [&] {
    if (l == nullptr) fail(XIO_ERR_ARG, "{}: link is null; give the one that xio_sdma_connect made", function);
    if (!links().has(l))
      fail(XIO_ERR_STATE, "{}: the link {} is not connected or was disconnected; call xio_sdma_connect first", function,
           static_cast<const void*>(l));
    body(l->impl);
  });
}

}  // namespace

extern "C" {

xio_status_t xio_sdma_connect(const xio_sdma_link_attr_t* attr, xio_sdma_link_t** link) {
  return entry(__func__, [&, function = __func__] {
    not_null(link, function, "link");
    *link = nullptr;
    xio::process::claim();
    auto made = std::make_unique<xio_sdma_link_t>(attr);
    links().add(made.get());
    *link = made.release();
  });
}

xio_status_t xio_sdma_disconnect(xio_sdma_link_t* link) {
  return on_link(link, __func__, [&](xio::sdma_link&) {
    links().remove(link);
    const std::unique_ptr<xio_sdma_link_t> last(link);
  });
}

xio_status_t xio_sdma_map(xio_sdma_link_t* link, void* base, size_t bytes) {
  return on_link(link, __func__, [&](xio::sdma_link& l) { l.map(base, bytes); });
}

xio_status_t xio_sdma_unmap(xio_sdma_link_t* link, void* base) {
  return on_link(link, __func__, [&](xio::sdma_link& l) { l.unmap(base); });
}

xio_status_t xio_sdma_queue_create(xio_sdma_link_t* link, const xio_sdma_queue_attr_t* attr, xio_sdma_queue_t* queue) {
  return on_link(link, __func__, [&, function = __func__](xio::sdma_link& l) {
    not_null(queue, function, "queue");
    *queue = {};
    *queue = l.create_queue(attr);
  });
}

xio_status_t xio_sdma_queue_destroy(xio_sdma_link_t* link, xio_sdma_queue_t queue) {
  return on_link(link, __func__, [&](xio::sdma_link& l) { l.destroy_queue(queue); });
}

xio_status_t xio_sdma_queue_stats(const xio_sdma_link_t* link, xio_sdma_queue_t queue, xio_engine_stats_t* out) {
  return on_link(link, __func__, [&, function = __func__](const xio::sdma_link& l) {
    not_null(out, function, "out");
    xio_engine_stats_t found = XIO_ENGINE_STATS_INIT;
    xio::add_stats({l.ring(queue)}, found);
    xio::write_out(out, found, "xio_engine_stats_t");
  });
}

xio_status_t xio_sdma_queue_error(const xio_sdma_link_t* link, xio_sdma_queue_t queue, xio_error_info_t* info) {
  return on_link(link, __func__, [&, function = __func__](const xio::sdma_link& l) {
    not_null(info, function, "info");
    xio_error_info_t found = XIO_ERROR_INFO_INIT;
    std::uint64_t when = 0;
    xio::find_failure({l.ring(queue)}, {}, found, when);
    xio::write_out(info, found, "xio_error_info_t");
  });
}

xio_status_t xio_sdma_copy(xio_sdma_link_t* link, void* dst, const void* src, size_t bytes) {
  return on_link(link, __func__, [&](xio::sdma_link& l) { l.wait_copy(l.start_copy(dst, src, bytes)); });
}

xio_status_t xio_sdma_copy_start(xio_sdma_link_t* link, void* dst, const void* src, size_t bytes, xio_req_t* request) {
  return on_link(link, __func__, [&, function = __func__](xio::sdma_link& l) {
    not_null(request, function, "request");
    *request = 0;
    *request = l.start_copy(dst, src, bytes);
  });
}

xio_status_t xio_sdma_copy_wait(xio_sdma_link_t* link, xio_req_t request) {
  return on_link(link, __func__, [&](xio::sdma_link& l) { l.wait_copy(request); });
}

}  // extern "C"
