// SPDX-License-Identifier: MIT
#include "kmod/settings.hpp"

#include <cstdlib>

namespace kmod_sim {
namespace {

const char* text(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == 0 ? otherwise : value;
}
std::uint64_t number(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == 0 ? otherwise : std::strtoull(value, nullptr, 0);
}

}  // namespace

// tests/kmod/run has checked the values.
const settings* session() {
  static const settings* const made = []() -> const settings* {
    const char* folder = std::getenv("XIO_TEST_KMOD");
    if (folder == nullptr || *folder == 0) return nullptr;
    auto* s = new settings;
    s->folder = folder;
    s->module = text("XIO_TEST_KMOD_MODULE", "here");
    s->piece = number("XIO_TEST_KMOD_PIECE", 64 << 10);
    s->segments = static_cast<std::uint32_t>(number("XIO_TEST_KMOD_SEGMENTS", 1 << 18));
    // amdgpu pins in system memory where a peer cannot reach all of the GPU's own.
    s->gpu_in_system_memory = std::string(text("XIO_TEST_KMOD_GPU_MEMORY", "device")) == "system" ||
                              std::string(text("XIO_AMDGPU_LARGE_BAR", "1")) == "0";
    s->pins = text("XIO_TEST_KMOD_PINS", "asked");
    s->lost_after = static_cast<std::uint32_t>(number("XIO_TEST_KMOD_LOST_AFTER", 0));
    s->stride = static_cast<std::uint32_t>(number("XIO_TEST_KMOD_DSTRD", 0));
    s->mdts = static_cast<std::uint32_t>(number("XIO_TEST_KMOD_MDTS", 128 << 10));
    s->queues = static_cast<std::uint32_t>(number("XIO_TEST_KMOD_QUEUES", 8));
    return s;
  }();
  return made;
}

}  // namespace kmod_sim
