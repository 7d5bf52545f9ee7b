// SPDX-License-Identifier: MIT
// While one lives, calls of this thread to the GPU's runtime disturb no capture of another thread. Included by
// accelerator.hpp only.
//
// A capture in global mode, which is the default, makes the runtime refuse allocating, freeing and registering memory
// in every thread, and the refused call ends the capture as well. XIO's calls touch no stream that anybody captures, so
// they may be made in relaxed mode. Calls that wait for the whole device are refused in every mode: see
// hw::wait_for_device.
#pragma once
#include "xio/hip.h"

namespace xio::gpu {

namespace {

class relaxed_capture {
 public:
  // A runtime that refuses has no captures, or is going away.
  relaxed_capture() : changed_(exchange()) {}
  relaxed_capture& operator=(relaxed_capture&&) = delete;
  ~relaxed_capture() {
    if (changed_) (void)exchange();
  }

 private:
  bool exchange() {
    if (hipThreadExchangeStreamCaptureMode(&mode_) == hipSuccess) return true;
    (void)hipGetLastError();
    return false;
  }

  hipStreamCaptureMode mode_ = hipStreamCaptureModeRelaxed;
  const bool changed_;
};

}  // namespace

}  // namespace xio::gpu
