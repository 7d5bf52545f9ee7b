// SPDX-License-Identifier: MIT
// The structs that C programs fill in, made whole: a caller of another version may know fewer fields or more.
#pragma once
#include "bootstrap/bootstrap.hpp"
#include "xio/xio.h"

namespace xio {

// Fields that the caller does not know are 0. Fields that this library does not know must be 0: they ask for
// something that it cannot do. `attr` may be null.
template <class T>
T read_attr(const T* attr, const char* name) {
  T out{};
  out.size = sizeof(T);
  if (attr == nullptr) return out;
  const std::size_t given = attr->size;
  if (given < sizeof attr->size || given > 4096)
    fail(XIO_ERR_CONFIG, "{}.size is {}; set it to sizeof({}), as the _INIT macro does", name, given, name);
  const auto* bytes = reinterpret_cast<const unsigned char*>(attr);
  for (std::size_t i = sizeof(T); i < given; ++i)
    if (bytes[i] != 0)
      fail(XIO_ERR_CONFIG,
           "{} has {} bytes and sets a field at byte {} that this libxio, with {} bytes, does not know; set it to 0 or "
           "install a newer libxio",
           name, given, i, sizeof(T));
  std::memcpy(static_cast<void*>(&out), attr, given < sizeof(T) ? given : sizeof(T));
  out.size = sizeof(T);
  return out;
}

// The way back: a caller of another version gets the members that both know. Throws XIO_ERR_CONFIG for a size that no
// version has.
template <class T>
void write_out(T* out, const T& found, const char* name) {
  const std::size_t known = out->size;
  if (known <= sizeof out->size || known > 4096)
    fail(XIO_ERR_CONFIG, "{}.size is {}; set it to sizeof({}), as the _INIT macro does", name, known, name);
  std::memcpy(static_cast<void*>(out), &found, known < sizeof(T) ? known : sizeof(T));
  out->size = known;
}

// The environment, overridden by what the program asks for. Throws XIO_ERR_CONFIG.
options init_options(const xio_init_attr_t* attr);

// The channel to the other PEs: by the unique id or the communicator that the program gives, else as the options and
// the launcher say. Throws XIO_ERR_CONFIG for members that do not go together.
std::unique_ptr<bootstrap::channel> connect(const xio_init_attr_t* attr, const bootstrap_options& o);

// The part that can still be read when init_options throws: enough to report the error to the other PEs.
options fallback_options(const xio_init_attr_t* attr);

// Checked and complete. depth and pool are final, bulk_bytes 0 = never, queues (to each PE) 0 = as many as NICs.
struct ctx_settings {
  xio_route_t route;
  std::uint32_t depth, pool, queues;
  std::uint32_t copy_queues;  // to each PE
  std::uint32_t immediates;   // of each PE, 0 = none
  std::uint64_t bulk_bytes;
};
ctx_settings choose_ctx(const xio_ctx_attr_t* attr, const options& o);

// Checked and complete.
xio_storage_attr_t choose_storage(const xio_storage_attr_t* attr, const nvme_options& o);

}  // namespace xio
