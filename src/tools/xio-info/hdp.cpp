// SPDX-License-Identifier: MIT
// Says what would flush the host data path, and why.
#include "memory/hdp.hpp"
#include "base/error.hpp"
#include "ctx/hdp.hpp"
#include "tools/xio-info/section.hpp"
#include "transport/sdma/sdma.hpp"

namespace xio::info {
namespace {

// A packet that the software engine takes flushes no real HDP.
bool has_own_copy_queue(const sdma_options& o) {
  bool own = false;
  guard([&] {
    progress::machine machine(1);
    own = std::string(sdma::open_engine(o, machine, gpu::payload())->backend()).rfind("model", 0) != 0;
  });
  return own;
}

}  // namespace

section hdp_section(const sdma_options& o, bool gpu_ready) {
  section s{"hdp", "Host data path (XIO_HDP)", {{"asked", std::string(option::word_of(o.hdp)), ""}}};
  if (!gpu_ready) {
    s.rows.push_back({"way", std::string("unknown"), "no GPU"});
    return s;
  }
  const memory::hdp_facts f = find_hdp_facts(o, [&] { return has_own_copy_queue(o); });
  const xio_status_t status = guard([&] {
    const memory::hdp_decision d = memory::decide_hdp(f, o.hdp);
    s.rows.push_back({"way", std::string(memory::hdp_way_name(d.way)), ""});
    s.rows.push_back({"way_for_storage", std::string(memory::hdp_way_name(d.storage)), ""});
    s.rows.push_back({"reason", d.reason, ""});
  });
  if (status != XIO_OK) {
    s.rows.push_back({"way", std::string("error"), ""});
    s.rows.push_back({"reason", std::string(last_error()), ""});
  }
  s.rows.push_back({"link", std::string(memory::hdp_link_name(f.link)), "between PCIe devices and the GPU's memory"});
  s.rows.push_back({"register_mapped", f.register_mapped, ""});
  s.rows.push_back({"kernels_store", f.kernels_store, "to the register"});
  s.rows.push_back({"large_bar", f.large_bar, ""});
  s.rows.push_back({"virtual_machine", f.virtual_machine, ""});
  return s;
}

}  // namespace xio::info
