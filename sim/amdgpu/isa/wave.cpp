// SPDX-License-Identifier: MIT
#include "amdgpu/isa/wave.hpp"

namespace amdgpu {

fault& stop(wave& w, const operation& o, fault::kind what, const char* why) {
  fault& f = w.of->failed;
  w.stopped = true;
  f = fault{};
  f.what = what;
  f.kernel = w.of->how.name;
  f.pc = w.pc - o.bytes;
  f.instruction = o.text;
  for (unsigned i = 0; i < 3; ++i) f.workgroup[i] = w.of->id[i];
  f.wave = w.number;
  f.why = why;
  return f;
}

void stop(wave& w, const operation& o, const refusal& no, unsigned bytes) {
  fault& f = stop(w, o, no.misaligned ? fault::kind::alignment : fault::kind::memory, no.why);
  f.lane = no.lane;
  f.address = no.address;
  f.bytes = bytes;
  f.write = no.write;
}

// MI200 ISA 3.1: sources that are neither register nor constant.
std::uint64_t special64(const wave& w, unsigned index) {
  const launch& how = w.of->how;
  switch (index) {
    case reg::shared_base: return how.lds_aperture;
    case reg::shared_limit: return how.lds_aperture | 0xffffffff;
    case reg::private_base: return how.private_aperture;
    case reg::private_limit: return how.private_aperture | 0xffffffff;
    case reg::vccz: return w.mask(reg::vcc) == 0;
    case reg::execz: return w.exec() == 0;
    case reg::scc: return w.scc;
    default: return 0;
  }
}

}  // namespace amdgpu
