// SPDX-License-Identifier: MIT
// The C boundary: checks pointers, catches exceptions, calls the world.

#include <cstdio>
#include <cstdlib>

#include "base/backends.hpp"
#include "base/log.hpp"
#include "bootstrap/unique_id.hpp"
#include "config.h"
#include "ctx/door.hpp"
#include "ctx/program.hpp"
#include "xio/internal.h"
#include "xio/memory.h"
#include "xio/stream.h"
#include "xio/team.h"

namespace {

using xio::entry;

// Worlds between xio_init and xio_finalize: a pointer that is not here is refused before it is followed.
class live_worlds {
 public:
  void add(xio_world_t* w) {
    std::lock_guard hold(lock_);
    all_.insert(w);
  }
  bool has(const xio_world_t* w) {
    std::lock_guard hold(lock_);
    return all_.count(w) != 0;
  }
  void remove(const xio_world_t* w) {
    std::lock_guard hold(lock_);
    all_.erase(w);
  }

 private:
  std::mutex lock_;
  std::set<const xio_world_t*> all_;
};

live_worlds& worlds() {
  // Never destroyed: programs may call from destructors of their own statics.
  static auto* one = new live_worlds;
  return *one;
}

// For calls that have no status to return.
bool is_live(const xio_world_t* w) { return !xio::process::is_forked() && worlds().has(w); }

using xio::in_world;
using xio::not_null;

// The environment or the attributes of this PE are wrong. The others must not wait for it in vain: it joins them
// just to say so.
[[noreturn]] void refuse_with_all(const xio_init_attr_t* attr, const xio::error& why) {
  xio::log::error("xio_init: {}", why.what());
  try {
    const xio::options o = xio::fallback_options(attr);
    xio::log::set_level(o.log_level);
    const auto channel = xio::connect(attr, o);
    xio::agreement(*channel).each(xio::call::init, [&] { throw why; });
  } catch (const std::exception& e) {
    xio::log::debug("xio_init: the other PEs could not be informed: {}", e.what());
  }
  throw why;
}

xio::options read_options(const xio_init_attr_t* attr) {
  try {
    return xio::init_options(attr);
  } catch (const xio::error& why) {
    refuse_with_all(attr, why);
  }
}

}  // namespace

const xio::world& xio::checked(const xio_world_t* w, const char* function) {
  if (w == nullptr) fail(XIO_ERR_ARG, "{}: world is null; give the one that xio_init made", function);
  if (!worlds().has(w))
    fail(XIO_ERR_STATE, "{}: the world {} is not initialised or was finalized; call xio_init first", function,
         static_cast<const void*>(w));
  return w->impl;
}

extern "C" {

void xio_internal_program_has(uint32_t engines, uint32_t families) { xio::program::add_file(engines, families); }

void xio_internal_program_layout(uint32_t layout) { xio::program::add_layout(layout); }

void xio_internal_backends(void (*each)(void* arg, const char* engine, const char* backend), void* arg) {
  xio::entry(__func__, [&] {
    for (const auto& [engine, backend] : xio::noted_backends()) each(arg, engine.c_str(), backend.c_str());
  });
}

const char* xio_status_name(xio_status_t status) {
  switch (status) {
#define XIO_NAME(s) \
  case s: return #s
    XIO_NAME(XIO_OK);
    XIO_NAME(XIO_PENDING);
    XIO_NAME(XIO_ERR_ARG);
    XIO_NAME(XIO_ERR_PE);
    XIO_NAME(XIO_ERR_NOT_SYMMETRIC);
    XIO_NAME(XIO_ERR_NOT_REGISTERED);
    XIO_NAME(XIO_ERR_NO_MEMORY);
    XIO_NAME(XIO_ERR_CONFIG);
    XIO_NAME(XIO_ERR_UNSUPPORTED);
    XIO_NAME(XIO_ERR_NO_ROUTE);
    XIO_NAME(XIO_ERR_TIMEOUT);
    XIO_NAME(XIO_ERR_PEER);
    XIO_NAME(XIO_ERR_AUTH);
    XIO_NAME(XIO_ERR_TRANSPORT);
    XIO_NAME(XIO_ERR_STORAGE);
    XIO_NAME(XIO_ERR_IO);
    XIO_NAME(XIO_ERR_STATE);
    XIO_NAME(XIO_ERR_INTERNAL);
#undef XIO_NAME
  }
  return "XIO_ERR_UNKNOWN";
}

const char* xio_last_error(void) { return xio::last_error(); }

void xio_version(int* major, int* minor, int* patch) {
  int parts[3] = {};
  std::sscanf(PACKAGE_VERSION, "%d.%d.%d", &parts[0], &parts[1], &parts[2]);
  if (major != nullptr) *major = parts[0];
  if (minor != nullptr) *minor = parts[1];
  if (patch != nullptr) *patch = parts[2];
}

uint32_t xio_abi_version(void) { return XIO_ABI_VERSION; }

size_t xio_size_of(const char* type) {
  static constexpr struct {
    const char* name;
    size_t bytes;
  } k_sizes[] = {
#define XIO_SIZE(type) {#type, sizeof(type)}
      XIO_SIZE(xio_ctx_t),        XIO_SIZE(xio_team_t),          XIO_SIZE(xio_storage_t),
      XIO_SIZE(xio_unique_id_t),  XIO_SIZE(xio_option_t),        XIO_SIZE(xio_init_attr_t),
      XIO_SIZE(xio_ctx_attr_t),   XIO_SIZE(xio_storage_attr_t),  XIO_SIZE(xio_stream_attr_t),
      XIO_SIZE(xio_error_info_t), XIO_SIZE(xio_engine_stats_t),  XIO_SIZE(xio_mem_place_t),
      XIO_SIZE(xio_mem_attr_t),   XIO_SIZE(xio_mem_pair_t),      XIO_SIZE(xio_mem_cache_stats_t),
      XIO_SIZE(xio_pe_info_t),    XIO_SIZE(xio_shrink_report_t),
#undef XIO_SIZE
  };
  if (type == nullptr) return 0;
  for (const auto& one : k_sizes)
    if (std::strcmp(one.name, type) == 0) return one.bytes;
  return 0;
}

xio_status_t xio_get_unique_id(xio_unique_id_t* id) {
  return entry(__func__, [&, function = __func__] {
    not_null(id, function, "id");
    *id = xio::bootstrap::make_unique_id(xio::options::from_environment());
  });
}

xio_status_t xio_init(const xio_init_attr_t* attr, xio_world_t** world) {
  return entry(__func__, [&, function = __func__] {
    not_null(world, function, "world");
    *world = nullptr;
    xio::options o = read_options(attr);
    xio::process::claim();
    const auto until = xio::bootstrap::deadline::in(o.timeout_ms);
    auto channel = xio::connect(attr, o);
    channel->limit(until);
    o.tcp_key = xio::secret_text();  // the channel keeps what it needs of it, stretched
    auto made = std::make_unique<xio_world_t>(std::move(o), std::move(channel));
    made->impl.members().channel().limit({});
    worlds().add(made.get());
    *world = made.release();
  });
}

xio_status_t xio_finalize(xio_world_t* world) {
  return in_world(world, __func__, [&](xio::world& w) {
    worlds().remove(world);
    std::unique_ptr<xio_world_t> last(world);
    try {
      w.finalize();
    } catch (...) {
      // A kernel that goes on must find what it was given.
      if (w.in_use()) (void)last.release();
      throw;
    }
  });
}

xio_status_t xio_abort(xio_world_t* world, int code, const char* text) {
  return in_world(world, __func__, [&](xio::world& w) {
    const int status = code > 0 && code <= 255 ? code : 1;
    std::fprintf(stderr, "xio_abort: PE %d of %d ends all with status %d%s%s\n", w.members().me(), w.members().size(),
                 status, text != nullptr ? ": " : "", text != nullptr ? text : "");
    std::fflush(nullptr);
    w.members().abort(status);
    std::_Exit(status);
  });
}

int xio_my_pe(const xio_world_t* world) { return is_live(world) ? world->impl.members().me() : -1; }
int xio_n_pes(const xio_world_t* world) { return is_live(world) ? world->impl.members().size() : -1; }

xio_status_t xio_host_barrier(xio_world_t* world) {
  return in_world(world, __func__, [&](xio::world& w) { w.members().barrier(); });
}

// --- Memory ------------------------------------------------------------------------------------------

xio_status_t xio_malloc(xio_world_t* world, size_t bytes, void** out) {
  return in_world(world, __func__, [&](xio::world& w) { w.heap().allocate({"xio_malloc", 1, bytes}, out); });
}

xio_status_t xio_calloc(xio_world_t* world, size_t count, size_t bytes, void** out) {
  return in_world(world, __func__, [&](xio::world& w) {
    w.heap().allocate({"xio_calloc", count, bytes, 1, true}, out);
  });
}

xio_status_t xio_align(xio_world_t* world, size_t alignment, size_t bytes, void** out) {
  return in_world(world, __func__, [&](xio::world& w) { w.heap().allocate({"xio_align", 1, bytes, alignment}, out); });
}

xio_status_t xio_free(xio_world_t* world, void* block) {
  return in_world(world, __func__, [&](xio::world& w) { w.heap().release(block); });
}

xio_status_t xio_free_dropped(xio_world_t* world, void** blocks, size_t* count) {
  return in_world(world, __func__, [&, function = __func__](xio::world& w) {
    not_null(count, function, "count");
    if (*count != 0) not_null(blocks, function, "blocks");
    std::vector<void*> left(blocks, blocks + *count);
    const auto write_back = [&] {
      std::ranges::copy(left, blocks);
      *count = left.size();
    };
    try {
      w.heap().release_dropped(left);
    } catch (...) {
      write_back();
      throw;
    }
    write_back();
  });
}

void* xio_ptr(const xio_world_t* world, const void* symmetric, int pe) {
  return is_live(world) ? world->impl.heap().reach(symmetric, pe) : nullptr;
}

xio_status_t xio_ptr_table(const xio_world_t* world, const void* symmetric, int64_t* table) {
  return in_world(world, __func__, [&, function = __func__](const xio::world& w) {
    not_null(symmetric, function, "symmetric");
    not_null(table, function, "table");
    // A PE reaches its own symmetric memory in any case.
    if (w.heap().reach(symmetric, w.members().me()) == nullptr)
      xio::fail(XIO_ERR_NOT_SYMMETRIC, "{}: {} is not in the symmetric heap; give an address of xio_malloc's", function,
                symmetric);
    for (int pe = 0; pe < w.members().size(); ++pe)
      table[pe] = reinterpret_cast<std::intptr_t>(w.heap().reach(symmetric, pe));
  });
}

xio_status_t xio_mem_register(xio_world_t* world, void* base, size_t bytes) {
  return in_world(world, __func__, [&](xio::world& w) { w.local_memory().register_memory(base, bytes); });
}

xio_status_t xio_mem_unregister(xio_world_t* world, void* base) {
  return in_world(world, __func__, [&](xio::world& w) { w.local_memory().unregister_memory(base); });
}

xio_status_t xio_mem_cache_stats(const xio_world_t* world, xio_mem_cache_stats_t* out) {
  return in_world(world, __func__, [&, function = __func__](const xio::world& w) {
    not_null(out, function, "out");
    xio::write_out(out, w.local_memory().cache_stats(), "xio_mem_cache_stats_t");
  });
}

// --- Contexts ----------------------------------------------------------------------------------------

xio_status_t xio_ctx_create(xio_world_t* world, const xio_ctx_attr_t* attr, xio_ctx_t* ctx) {
  return in_world(world, __func__, [&](xio::world& w) { w.contexts().create(attr, ctx); });
}

xio_status_t xio_ctx_destroy(xio_world_t* world, xio_ctx_t ctx) {
  return in_world(world, __func__, [&](xio::world& w) { w.contexts().destroy(ctx); });
}

xio_status_t xio_ctx_recover(xio_world_t* world, xio_ctx_t ctx) {
  return in_world(world, __func__, [&](xio::world& w) { w.contexts().recover(ctx); });
}

const char* xio_route_name(const xio_world_t* world, xio_ctx_t ctx, size_t bytes, int pe) {
  const char* name = nullptr;
  in_world(world, __func__,
           [&](const xio::world& w) { name = xio::route_name(w.contexts().route_of(ctx, pe, bytes)); });
  return name;
}

xio_status_t xio_ctx_stats(const xio_world_t* world, xio_ctx_t ctx, xio_route_t route, xio_engine_stats_t* out) {
  return in_world(world, __func__, [&, function = __func__](const xio::world& w) {
    not_null(out, function, "out");
    xio::write_out(out, w.contexts().stats(ctx, route), "xio_engine_stats_t");
  });
}

xio_status_t xio_ctx_error(const xio_world_t* world, xio_ctx_t ctx, xio_error_info_t* info) {
  return in_world(world, __func__, [&, function = __func__](const xio::world& w) {
    not_null(info, function, "info");
    xio::write_out(info, w.ctx_error(ctx), "xio_error_info_t");
  });
}

// --- Storage -----------------------------------------------------------------------------------------

xio_status_t xio_storage_open(xio_world_t* world, const char* name, const xio_storage_attr_t* attr,
                              xio_storage_t* storage) {
  return in_world(world, __func__, [&, function = __func__](xio::world& w) {
    not_null(name, function, "name");
    not_null(storage, function, "storage");
    *storage = {};
    *storage = w.open_storage(name, attr);
  });
}

xio_status_t xio_storage_close(xio_world_t* world, xio_storage_t storage) {
  return in_world(world, __func__, [&](xio::world& w) { w.close_storage(storage); });
}

xio_status_t xio_storage_size(const xio_world_t* world, xio_storage_t storage, uint64_t* bytes, uint32_t* block_bytes) {
  return in_world(world, __func__, [&](const xio::world& w) {
    const auto& info = w.storages().info(storage);
    if (bytes != nullptr) *bytes = info.bytes;
    if (block_bytes != nullptr) *block_bytes = info.block_bytes;
  });
}

xio_status_t xio_storage_grow(xio_world_t* world, xio_storage_t storage, uint64_t bytes) {
  return in_world(world, __func__, [&](xio::world& w) { w.storages().grow(storage, bytes); });
}

xio_status_t xio_storage_stats(const xio_world_t* world, xio_storage_t storage, xio_engine_stats_t* out) {
  return in_world(world, __func__, [&, function = __func__](const xio::world& w) {
    not_null(out, function, "out");
    xio::write_out(out, w.storages().stats(storage), "xio_engine_stats_t");
  });
}

}  // extern "C"
