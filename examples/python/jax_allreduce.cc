// SPDX-License-Identifier: MIT
// A custom call of XLA: the sum of an array over all members of a team, by XIO in XLA's own stream. jax_allreduce.py
// compiles it with the headers of JAX and XIO, is linked with no libxio, and gives it the addresses of the calls.
#include <xio/stream.h>

#include <cstring>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

// The team that adds up, and two blocks of the symmetric heap: arrays of XLA lie elsewhere.
struct place {
  xio_world_t* world;
  xio_ctx_t ctx;
  xio_team_t team;
  void *in, *out;
  size_t bytes;
  decltype(&xio_put_on_stream) put;
  decltype(&xio_quiet_on_stream) quiet;
  decltype(&xio_reduce_on_stream) reduce;
  decltype(&xio_get_on_stream) get;
  decltype(&xio_my_pe) my_pe;
  decltype(&xio_last_error) last_error;
  int (*synchronize)(void*);  // of the host platform, whose XLA has no stream; else null
} here;

ffi::Error failed(const char* why) { return ffi::Error(ffi::ErrorCode::kInternal, why); }

xio_status_t add_up(xio_stream_t stream, xio_type_t type, void* y, const void* x, size_t bytes, size_t count) {
  const int me = here.my_pe(here.world);
  xio_status_t s = here.put(here.world, here.ctx, here.in, x, bytes, me, stream, nullptr);
  if (s == XIO_OK) s = here.quiet(here.world, here.ctx, stream, nullptr);
  if (s == XIO_OK)
    s = here.reduce(here.world, here.ctx, here.team, XIO_REDUCE_SUM, type, here.out, here.in, count, stream, nullptr);
  if (s == XIO_OK) s = here.get(here.world, here.ctx, y, here.out, bytes, me, stream, nullptr);
  return s;
}

ffi::Error all_reduce(xio_stream_t stream, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y) {
  if (here.world == nullptr) return failed("no world of XIO is open");
  if (x.size_bytes() > here.bytes) return failed("the array is larger than the blocks in XIO's heap");
  xio_type_t type = XIO_FLOAT;
  switch (x.element_type()) {
    case ffi::DataType::F32: break;
    case ffi::DataType::F64: type = XIO_DOUBLE; break;
    case ffi::DataType::F16: type = XIO_HALF; break;
    case ffi::DataType::BF16: type = XIO_BFLOAT16; break;
    case ffi::DataType::S32: type = XIO_INT32; break;
    default: return failed("XIO's sum is here for float, double, half, bfloat16 and int32");
  }
  const xio_status_t s = add_up(stream, type, y->untyped_data(), x.untyped_data(), x.size_bytes(), x.element_count());
  if (s != XIO_OK) return failed(here.last_error());
  if (here.synchronize != nullptr && here.synchronize(stream) != 0) return failed("the stream has failed");
  return ffi::Error::Success();
}
ffi::Error all_reduce_on_host(ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y) { return all_reduce(nullptr, x, y); }

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    on_gpu, all_reduce,
    ffi::Ffi::Bind().Ctx<ffi::PlatformStream<xio_stream_t>>().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(on_host, all_reduce_on_host,
                              ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());

extern "C" size_t place_bytes() { return sizeof here; }
extern "C" void set_place(const void* p) { std::memcpy(&here, p, sizeof here); }
