// SPDX-License-Identifier: MIT
// Device code as a GPU's compiler sees it: one kernel per thing to look at. Only compiled, never run; device_code.sh
// compiles it for each GPU and reads the assembly.
#include <xio/hip.h>
#include <xio/xio_device.hpp>

using namespace xio::dev;

extern "C" {

// 64 bytes of an entry leave in four 16-byte stores.
__global__ void gate_entry64(void* slot, entry64 entry) { store_entry(slot, entry); }

}  // extern "C"
