// SPDX-License-Identifier: MIT
// The HDP of a world: which engines could flush it, and the ring to oneself that a ctx then needs.
#pragma once
#include "ctx/engines.hpp"
#include "memory/hdp_flusher.hpp"

namespace xio {

// The facts with the engines in them. own_copy_queue: whether the GPU itself has a copy queue; asked only if that may
// be the way.
memory::hdp_facts find_hdp_facts(const sdma_options& o, const std::function<bool()>& own_copy_queue);

// Decides for this process's GPU, and starts what the way needs. Opens copy engines only if they may be the way.
std::unique_ptr<memory::hdp_flusher> open_hdp(const sdma_options& o, engines& e, const gpu::heap& heap);

// The engine that kernels flush by, or route::none.
dev::route flush_route(const memory::hdp_decision& d);

}  // namespace xio
