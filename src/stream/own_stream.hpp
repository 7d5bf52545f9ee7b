// SPDX-License-Identifier: MIT
// A stream of the library's own with one call of the host in it, and the words by which its end is seen.
#pragma once
#include "gpu/gpu.hpp"
#include "stream/job.hpp"

namespace xio::stream {

class own_stream {
 public:
  // Out of those that are kept; makes one where all are in use.
  own_stream();
  own_stream& operator=(own_stream&&) = delete;
  // Keeps it for another call, unless its work has not ended: then it is lost, for that work stores to its words.
  ~own_stream();

  xio_stream_t handle() const { return parts_.stream; }
  xio_status_t* status() const { return parts_.words.as<xio_status_t>(); }
  // Where kernels store a word that the call returns.
  std::uint64_t* value() const { return parts_.words.as<std::uint64_t>() + 1; }
  // In the place of the ctx's word for the first failure: this call's failure is its own.
  std::uint32_t* mark() const { return parts_.mark.as<std::uint32_t>(); }

  // The call is in the stream. Waits for its status; XIO_PENDING: not there after timeout_ms (0: for ever).
  xio_status_t wait(std::uint64_t timeout_ms);

 private:
  struct parts {
    xio_stream_t stream = nullptr;
    gpu::buffer words;  // the host's: the status, and a value of 8 bytes
    gpu::buffer mark;   // the device's; zero between calls
  };
  struct kept;
  static kept& all();

  parts parts_;
  bool given_ = false, ended_ = false;
};

}  // namespace xio::stream
