// SPDX-License-Identifier: MIT
// The capture of streams: their work becomes a graph instead of being done. The refusals are those of HIP and CUDA, the
// stricter one's where they differ, so that a program that is wrong there is wrong here.
#pragma once
#include <map>
#include <thread>

#include "gpu/host/stream.hpp"
#include "xio/hip_host.h"

namespace xio::host_exec {

// How much of each stream's captured work comes before something.
using frontier = std::map<const stream*, std::uint64_t>;

class capture {
 public:
  // From now on `origin` is captured.
  static std::shared_ptr<capture> begin(const std::shared_ptr<stream>& origin, hipStreamCaptureMode mode);
  // Its streams run again. Stores the graph, or says why there is none.
  hipError_t end(const stream& origin, std::vector<work>* graph);

  void record(const stream* on, work w);
  frontier reached(const stream* by) const;
  // `joins` is captured, too, and its work from now on comes behind `before`.
  void follow(const std::shared_ptr<stream>& joins, const frontier& before);
  void invalidate();
  bool is_valid() const;

  // Ends the captures beside which this thread may not allocate, wait or copy at once; false: there is none.
  static bool spoil_by_unsafe_call();
  // Ends those of streams that keep order with the default stream, which was given work.
  static bool spoil_by_default_stream();

 private:
  template <class Affected>
  static bool spoil(Affected&& affected);

  mutable std::mutex guard_;
  std::shared_ptr<stream> origin_;
  hipStreamCaptureMode mode_ = hipStreamCaptureModeGlobal;
  std::thread::id thread_;
  bool valid_ = true;
  std::vector<work> graph_;
  std::vector<std::shared_ptr<stream>> streams_;
  std::map<const stream*, frontier> reached_;
};

// hipThreadExchangeStreamCaptureMode's.
hipStreamCaptureMode& capture_mode_of_thread();

}  // namespace xio::host_exec
