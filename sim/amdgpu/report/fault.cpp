// SPDX-License-Identifier: MIT
#include "amdgpu/report/fault.hpp"

#include <cstdio>

namespace amdgpu {
namespace {

std::string hex(std::uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string accessed(const fault& f) {
  return std::string(f.write ? "write" : "read") + " of " + std::to_string(f.bytes) + " bytes at " + hex(f.address);
}

std::string head(const fault& f) {
  switch (f.what) {
    case fault::kind::memory: return f.bytes ? "memory fault: " + accessed(f) : "memory fault at " + hex(f.address);
    case fault::kind::alignment: return "misaligned access at " + hex(f.address);
    case fault::kind::lds: return "LDS fault: " + accessed(f);
    case fault::kind::unknown: return "instruction not interpreted";
    case fault::kind::illegal: return "illegal instruction";
    case fault::kind::trap: return "trap " + std::to_string(f.trap);
    case fault::kind::early: return "register used too early";
    case fault::kind::unwritten: return "register never written";
    case fault::kind::launch: return "kernel not launched";
    default: return "no fault";
  }
}

}  // namespace

std::string fault::sentence() const {
  std::string text = head(*this);
  if (!kernel.empty()) text += " in kernel " + kernel;
  if (what == kind::launch) return text + ": " + why + (address ? " (" + hex(address) + ")" : "");
  if (what == kind::none) return text;
  text += " by '" + instruction + "' at pc " + hex(pc) + ", workgroup (" + std::to_string(workgroup[0]) + ", " +
          std::to_string(workgroup[1]) + ", " + std::to_string(workgroup[2]) + "), wave " + std::to_string(wave);
  if (lane >= 0) text += ", lane " + std::to_string(lane);
  return text + ": " + why;
}

}  // namespace amdgpu
