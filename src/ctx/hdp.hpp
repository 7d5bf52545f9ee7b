// SPDX-License-Identifier: MIT
// The HDP of a world: which engines could flush it, and the ring to oneself that a ctx then needs.
#pragma once
#include <memory>

#include "base/options.hpp"
#include "ctx/engines.hpp"
#include "gpu/gpu.hpp"
#include "memory/hdp_flusher.hpp"

namespace xio {

// Decides for this process's GPU, and starts what the way needs. Opens copy engines only if they may be the way.
std::unique_ptr<memory::hdp_flusher> open_hdp(const options& o, engines& e, const gpu::heap& heap);

// The engine that kernels flush by, or route::none.
dev::route flush_route(const memory::hdp_decision& d);

}  // namespace xio
