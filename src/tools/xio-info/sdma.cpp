// SPDX-License-Identifier: MIT
// Copy engines: the queues that a world would get, and the packets that they accept.
#include "transport/sdma/sdma.hpp"
#include "base/error.hpp"
#include "gpu/gpu.hpp"
#include "tools/xio-info/section.hpp"
#include "transport/sdma/generation.hpp"

namespace xio::info {
namespace {

// As linux names the engines' versions (amdgpu sdma_v4_0.c and on).
const char* engine_version(wire::sdma::generation g) {
  switch (g) {
    case wire::sdma::gen_none: break;
    case wire::sdma::gen_9_0: return "SDMA 4.0 to 4.2";
    case wire::sdma::gen_9_0a: return "SDMA 4.4";
    case wire::sdma::gen_9_4: return "SDMA 4.4.2";
    case wire::sdma::gen_10_1: return "SDMA 5.0";
    case wire::sdma::gen_10_3: return "SDMA 5.2";
    case wire::sdma::gen_11: return "SDMA 6";
    case wire::sdma::gen_12: return "SDMA 7";
  }
  return "unknown";
}

}  // namespace

section sdma_section(const sdma_options& o, bool gpu_ready) {
  section s{"sdma", "Copy engines (SDMA)", {}};
  if (!gpu_ready) {
    s.rows.push_back({"backend", std::string("none"), "no GPU"});
    return s;
  }
  std::string backend;
  const xio_status_t status = guard([&] {
    progress::machine machine(1);
    backend = sdma::open_engine(o, machine, gpu::payload())->backend();
  });
  if (status != XIO_OK) {
    s.rows.push_back({"backend", std::string("none"), last_error()});
    return s;
  }
  s.rows.push_back({"backend", backend, ""});
  const std::string name = backend.rfind("model", 0) == 0 ? o.model_gpu : gpu::arch();
  guard([&] {
    const auto g = sdma::generation_of(name);
    s.rows.push_back({"generation", std::string(engine_version(g)), ""});
    s.rows.push_back({"copy_bytes_max", static_cast<std::uint64_t>(sdma::chunk_of(g)), "of one packet"});
  });
  return s;
}

}  // namespace xio::info
