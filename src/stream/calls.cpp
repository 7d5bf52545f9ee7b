// SPDX-License-Identifier: MIT
// The C boundary of xio/stream.h.
#include "base/error.hpp"
#include "stream/checks.hpp"
#include "xio/device/impl/team_layout.hpp"
#include "xio/device/reduction.hpp"

namespace {

using xio::in_world;
using xio::not_null;
using xio::stream::call;
using xio::stream::job;
using xio::stream::order;

static_assert(XIO_REDUCE_SUM == static_cast<int>(xio_reduction::sum) &&
              XIO_REDUCE_XOR == static_cast<int>(xio_reduction::bit_xor));

constexpr int k_types = XIO_DOUBLE + 1;
constexpr std::uint32_t k_type_bits = 4;  // of a kind, see xio/device/impl/kinds.hpp

std::size_t size_of(xio_type_t t) {
  return std::size_t{1} << (t < XIO_HALF ? t / 2 : t < XIO_FLOAT ? 1 : t - XIO_HALF);
}

// check(order, job) checks the arguments and fills in the job.
template <class Check>
xio_status_t enqueue(xio_world_t* world, const char* function, xio_ctx_t ctx, xio_stream_t stream,
                     const xio_stream_attr_t* attr, call what, Check&& check) {
  return in_world(world, function, [&](xio::world& w) {
    order o(w, function, ctx, stream, attr);
    job j{};
    check(o, j);
    if (what >= call::put && what <= call::put_signal)
      o.copy(what, j);
    else if (what >= call::alltoall && what <= call::reduce_scatter)
      o.give_collective(what, j);
    else
      o.give(what, j);
  });
}

// A collective whose result and source are so many bytes of every member.
void fill_blocks(order& o, job& j, xio_team_t team, void* dst, const void* src, std::size_t bytes) {
  o.team(team);
  fill(j, dst, src, bytes, 0);
}

// The bytes of `count` elements.
std::size_t fill_kind(order& o, job& j, xio_reduction_t op, xio_type_t type, std::size_t count) {
  o.is_one_of(op, XIO_REDUCE_XOR + 1, "op");
  o.is_one_of(type, k_types, "type");
  o.combines(op, type);
  j.how = static_cast<std::uint32_t>(op) << k_type_bits | static_cast<std::uint32_t>(type);
  return o.product(count, size_of(type), "count");
}

}  // namespace

extern "C" {

#define XIO_STREAM_CALL(what, ...) enqueue(world, __func__, ctx, stream, attr, call::what, __VA_ARGS__)

xio_status_t xio_put_on_stream(xio_world_t* world, xio_ctx_t ctx, void* dst, const void* src, size_t bytes, int pe,
                               xio_stream_t stream, const xio_stream_attr_t* attr) {
  return XIO_STREAM_CALL(put, [&](order& o, job& j) { fill_put(o, j, dst, src, bytes, pe); });
}

xio_status_t xio_get_on_stream(xio_world_t* world, xio_ctx_t ctx, void* dst, const void* src, size_t bytes, int pe,
                               xio_stream_t stream, const xio_stream_attr_t* attr) {
  return XIO_STREAM_CALL(get, [&](order& o, job& j) { fill_get(o, j, dst, src, bytes, pe); });
}

xio_status_t xio_put_signal_on_stream(xio_world_t* world, xio_ctx_t ctx, void* dst, const void* src, size_t bytes,
                                      uint64_t* sig, uint64_t value, xio_signal_op_t op, int pe, xio_stream_t stream,
                                      const xio_stream_attr_t* attr) {
  return XIO_STREAM_CALL(put_signal, [&](order& o, job& j) {
    fill_put(o, j, dst, src, bytes, pe);
    fill_signal(o, j, sig, value, op, pe);
  });
}

xio_status_t xio_signal_op_on_stream(xio_world_t* world, xio_ctx_t ctx, uint64_t* sig, uint64_t value,
                                     xio_signal_op_t op, int pe, xio_stream_t stream, const xio_stream_attr_t* attr) {
  return XIO_STREAM_CALL(signal_op, [&](order& o, job& j) { fill_signal(o, j, sig, value, op, pe); });
}

xio_status_t xio_signal_wait_on_stream(xio_world_t* world, xio_ctx_t ctx, const uint64_t* sig, xio_cmp_t cmp,
                                       uint64_t value, xio_stream_t stream, const xio_stream_attr_t* attr) {
  return XIO_STREAM_CALL(signal_wait, [&](order& o, job& j) { fill_wait(o, j, sig, cmp, value); });
}

xio_status_t xio_signal_take_on_stream(xio_world_t* world, xio_ctx_t ctx, uint64_t* sig, uint64_t value,
                                       xio_stream_t stream, const xio_stream_attr_t* attr) {
  return XIO_STREAM_CALL(signal_take, [&](order& o, job& j) {
    o.word(sig);
    j.sig = sig;
    j.value = value;
  });
}

#define XIO_STREAM_BARRIER(name)                                                              \
  xio_status_t xio_##name##_on_stream(xio_world_t* world, xio_ctx_t ctx, xio_stream_t stream, \
                                      const xio_stream_attr_t* attr) {                        \
    return XIO_STREAM_CALL(name, [](order&, job&) {});                                        \
  }
XIO_STREAM_BARRIER(quiet)
XIO_STREAM_BARRIER(barrier_all)
XIO_STREAM_BARRIER(sync_all)
#undef XIO_STREAM_BARRIER

#define XIO_STREAM_TEAM_BARRIER(name)                                                                          \
  xio_status_t xio_##name##_on_stream(xio_world_t* world, xio_ctx_t ctx, xio_team_t team, xio_stream_t stream, \
                                      const xio_stream_attr_t* attr) {                                         \
    return XIO_STREAM_CALL(name, [&](order& o, job&) { o.team(team); });                                       \
  }
XIO_STREAM_TEAM_BARRIER(team_barrier)
XIO_STREAM_TEAM_BARRIER(team_sync)
#undef XIO_STREAM_TEAM_BARRIER

xio_status_t xio_alltoall_on_stream(xio_world_t* world, xio_ctx_t ctx, xio_team_t team, void* dst, const void* src,
                                    size_t bytes, xio_stream_t stream, const xio_stream_attr_t* attr) {
  return XIO_STREAM_CALL(alltoall, [&](order& o, job& j) {
    fill_blocks(o, j, team, dst, src, bytes);
    const std::size_t all = o.product(o.members(), bytes, "a block for each member");
    o.symmetric(dst, all, "dst");
    o.local_of_team(src, all, "src");
  });
}

xio_status_t xio_fcollect_on_stream(xio_world_t* world, xio_ctx_t ctx, xio_team_t team, void* dst, const void* src,
                                    size_t bytes, xio_stream_t stream, const xio_stream_attr_t* attr) {
  return XIO_STREAM_CALL(fcollect, [&](order& o, job& j) {
    fill_blocks(o, j, team, dst, src, bytes);
    o.symmetric(dst, o.product(o.members(), bytes, "a block of each member"), "dst");
    o.local_of_team(src, bytes, "src");
  });
}

xio_status_t xio_broadcast_on_stream(xio_world_t* world, xio_ctx_t ctx, xio_team_t team, void* dst, const void* src,
                                     size_t bytes, int root, xio_stream_t stream, const xio_stream_attr_t* attr) {
  return XIO_STREAM_CALL(broadcast, [&](order& o, job& j) {
    fill_blocks(o, j, team, dst, src, bytes);
    o.root(root);
    o.symmetric(dst, bytes, "dst");
    if (o.is_member(root)) o.local_of_team(src, bytes, "src");
    j.pe = root;
  });
}

xio_status_t xio_collect_on_stream(xio_world_t* world, xio_ctx_t ctx, xio_team_t team, void* dst, const void* src,
                                   size_t bytes, xio_stream_t stream, const xio_stream_attr_t* attr) {
  return XIO_STREAM_CALL(collect, [&](order& o, job& j) {
    fill_blocks(o, j, team, dst, src, bytes);
    o.symmetric(dst, bytes, "dst");
    o.local_of_team(src, bytes, "src");
  });
}

xio_status_t xio_alltoallv_on_stream(xio_world_t* world, xio_ctx_t ctx, xio_team_t team, void* dst,
                                     const size_t* dst_offsets, const size_t* dst_bytes, const void* src,
                                     const size_t* src_offsets, const size_t* src_bytes, xio_stream_t stream,
                                     const xio_stream_attr_t* attr) {
  return XIO_STREAM_CALL(alltoallv, [&, function = __func__](order& o, job& j) {
    fill_blocks(o, j, team, dst, src, 0);
    for (const size_t* table : {dst_offsets, dst_bytes, src_offsets, src_bytes}) {
      not_null(table, function, "a table of offsets or sizes");
      o.reached_by_kernels(table, "a table of offsets or sizes");
    }
    j.tables[0] = dst_offsets;
    j.tables[1] = dst_bytes;
    j.tables[2] = src_offsets;
    j.tables[3] = src_bytes;
  });
}

xio_status_t xio_reduce_on_stream(xio_world_t* world, xio_ctx_t ctx, xio_team_t team, xio_reduction_t op,
                                  xio_type_t type, void* dst, const void* src, size_t count, xio_stream_t stream,
                                  const xio_stream_attr_t* attr) {
  return XIO_STREAM_CALL(reduce, [&, function = __func__](order& o, job& j) {
    const std::size_t bytes = fill_kind(o, j, op, type, count);
    fill_blocks(o, j, team, dst, src, bytes);
    // Packets come from any memory, and go to any.
    const bool packets = bytes <= team.packet_bytes;
    o.symmetric(packets ? ctx.arena : dst, bytes, "dst");
    o.symmetric(packets ? ctx.arena : src, bytes, "src");
    if (bytes != 0) not_null(dst, function, "dst");
    o.reached_by_kernels(dst, "dst");
    o.local_of_team(src, bytes, "src");
  });
}

xio_status_t xio_reduce_scatter_on_stream(xio_world_t* world, xio_ctx_t ctx, xio_team_t team, xio_reduction_t op,
                                          xio_type_t type, void* dst, const void* src, size_t count,
                                          xio_stream_t stream, const xio_stream_attr_t* attr) {
  return XIO_STREAM_CALL(reduce_scatter, [&](order& o, job& j) {
    const std::size_t bytes = fill_kind(o, j, op, type, count);
    fill_blocks(o, j, team, dst, src, bytes);
    o.symmetric(dst, bytes, "dst");
    o.symmetric(src, o.product(o.members(), bytes, "elements for each member"), "src");
  });
}

xio_status_t xio_read_on_stream(xio_world_t* world, xio_ctx_t ctx, void* buf, xio_storage_t storage, uint64_t offset,
                                size_t bytes, xio_stream_t stream, const xio_stream_attr_t* attr) {
  return XIO_STREAM_CALL(read, [&](order& o, job& j) {
    o.storage(storage, offset, bytes, false);
    o.for_drives(storage, buf, bytes);
    fill(j, buf, nullptr, bytes, 0);
    j.storage = storage;
    j.value = offset;
  });
}

xio_status_t xio_write_on_stream(xio_world_t* world, xio_ctx_t ctx, const void* buf, xio_storage_t storage,
                                 uint64_t offset, size_t bytes, xio_stream_t stream, const xio_stream_attr_t* attr) {
  return XIO_STREAM_CALL(write, [&](order& o, job& j) {
    o.storage(storage, offset, bytes, true);
    o.for_drives(storage, buf, bytes);
    fill(j, nullptr, buf, bytes, 0);
    j.storage = storage;
    j.value = offset;
  });
}

xio_status_t xio_storage_sync_on_stream(xio_world_t* world, xio_ctx_t ctx, xio_storage_t storage, xio_stream_t stream,
                                        const xio_stream_attr_t* attr) {
  return XIO_STREAM_CALL(storage_sync, [&](order& o, job& j) {
    o.storage(storage, 0, 0, false);
    j.storage = storage;
  });
}

xio_status_t xio_ctx_failed(const xio_world_t* world, xio_ctx_t ctx, xio_status_t* first) {
  return in_world(world, __func__, [&, function = __func__](const xio::world& w) {
    not_null(first, function, "first");
    const std::uint32_t word = __atomic_load_n(w.contexts().get(ctx).stream_failed(), __ATOMIC_ACQUIRE);
    *first = static_cast<xio_status_t>(static_cast<int>(word));
  });
}

xio_status_t xio_ctx_device(const xio_world_t* world, xio_ctx_t ctx, const xio_ctx_t** out) {
  return in_world(world, __func__, [&, function = __func__](const xio::world& w) {
    not_null(out, function, "out");
    *out = nullptr;
    *out = w.contexts().get(ctx).shown_value();
  });
}

xio_status_t xio_team_device(const xio_world_t* world, xio_team_t team, const xio_team_t** out) {
  return in_world(world, __func__, [&, function = __func__](const xio::world& w) {
    not_null(out, function, "out");
    *out = nullptr;
    if (team.n_pes == 0) xio::fail(XIO_ERR_STATE, "{}: the team is empty: this PE is in none", function);
    *out = w.teams().get(team).shown.as<xio_team_t>();
  });
}

xio_status_t xio_team_with_channel(const xio_world_t* world, xio_team_t team, uint32_t channel, xio_team_t* out) {
  return in_world(world, __func__, [&, function = __func__](const xio::world& w) {
    not_null(out, function, "out");
    if (team.n_pes == 0) xio::fail(XIO_ERR_STATE, "{}: the team is empty: this PE is in none", function);
    if (w.teams().get(team).pes.size() != team.n_pes || team.channels != w.teams().channels())
      xio::fail(XIO_ERR_ARG, "{}: the team is not as xio_team_create or xio_team_channel returned it", function);
    if (channel >= team.channels)
      xio::fail(XIO_ERR_ARG, "{}: channel {} is not one of 0 to {}", function, channel, team.channels - 1);
    const std::uint64_t each = xio::dev::team_channel_bytes(team.n_pes, team.packet_bytes, team.area_bytes);
    *out = team;
    out->work = static_cast<unsigned char*>(team.work) + (std::uint64_t{channel} - team.channel) * each;
    out->channel = static_cast<std::uint16_t>(channel);
  });
}

xio_status_t xio_ctx_clear(xio_world_t* world, xio_ctx_t ctx) {
  return in_world(world, __func__, [&](xio::world& w) { w.contexts().get(ctx).forget_failures(); });
}

xio_status_t xio_stream_prepare(xio_world_t* world, xio_ctx_t ctx) {
  return in_world(world, __func__, [&, function = __func__](xio::world& w) {
    (void)w.contexts().get(ctx);
    if (const char* why = xio::stream::load_kernels())
      xio::fail(XIO_ERR_UNSUPPORTED,
                "{}: this libxio has no kernels for the GPU {}: {}; configure XIO for it (XIO_HIP_ARCH, XIO_CUDA_ARCH)",
                function, xio::gpu::arch(), why);
  });
}

}  // extern "C"
