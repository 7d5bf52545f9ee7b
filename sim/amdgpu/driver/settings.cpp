// SPDX-License-Identifier: MIT
#include "amdgpu/driver/settings.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

namespace amdgpu {
namespace {

struct row {
  const char* name;
  std::uint64_t settings::*number;  // or
  std::string settings::*word;
  std::uint64_t least, most, step;
  const char* words;  // with a bar behind each; null: a path from the root
  const char* meaning;
};

constexpr row k_rows[] = {
    {"XIO_AMDGPU_GPUS", &settings::gpus, nullptr, 1, 8, 1, "", "how many GPUs there are"},
    {"XIO_AMDGPU_PARTITIONS", &settings::partitions, nullptr, 1, 8, 1, "", "of each GPU (CPX), each a node"},
    {"XIO_AMDGPU_PARTITION_NAMES", nullptr, &settings::partition_names, 0, 0, 1, "function|alike|",
     "how HIP names them: by PCI functions that are not there, or all alike"},
    {"XIO_AMDGPU_TARGET", nullptr, &settings::target, 0, 0, 1, "gfx90a|gfx942|gfx1100|", "which GPU each is"},
    {"XIO_AMDGPU_XCCS", &settings::xccs, nullptr, 1, 8, 1, "",
     "of each gfx942, with an L2 of its own; others have one"},
    {"XIO_AMDGPU_CUS", &settings::compute_units, nullptr, 8, 128, 8, "", "compute units of each"},
    {"XIO_AMDGPU_MEMORY_MIB", &settings::memory_mib, nullptr, 64, 65536, 1, "", "memory of each, per process"},
    {"XIO_AMDGPU_LINKS", nullptr, &settings::links, 0, 0, 1, "xgmi|pcie|", "what joins GPUs"},
    {"XIO_AMDGPU_LARGE_BAR", &settings::large_bar, nullptr, 0, 1, 1, "", "1: the host sees all of a GPU's memory"},
    {"XIO_AMDGPU_COPY_ENGINES", &settings::copy_engines, nullptr, 0, 5, 1, "", "of each: two for PCIe, then for xGMI"},
    {"XIO_AMDGPU_REGISTER_PAGES", &settings::register_pages, nullptr, 0, 1, 1, "",
     "1: pages of registers (memfds of that name) are mapped, as by amdgpu-dkms"},
    {"XIO_AMDGPU_IMPORTS", nullptr, &settings::imports, 0, 0, 1, "gem|kfd|none|",
     "what maps another device's registers that are a dma-buf: GEM and the compute driver, that alone, or nothing"},
    {"XIO_AMDGPU_KFD", &settings::kfd_minor, nullptr, 11, 23, 1, "",
     "minor version of the driver's calls: 11 of Linux 6.1, 17 of 6.12, 23 of 7.3"},
    {"XIO_AMDGPU_DOORBELLS", nullptr, &settings::doorbells, 0, 0, 1, "aligned|lost|deaf|",
     "lost: what lanes of a gfx942 store to the first two of an odd copy engine's does nothing, as before Linux "
     "6.12.113; deaf: nothing that lanes store to a copy engine's arrives"},
    {"XIO_AMDGPU_THREADS", &settings::threads, nullptr, 1, 64, 1, "", "host threads that run waves, per process"},
    {"XIO_AMDGPU_SLICE", &settings::slice, nullptr, 1, 1000000, 1, "", "instructions of a wave before another runs"},
    {"XIO_AMDGPU_MEMORY", nullptr, &settings::memory, 0, 0, 1, "plain|adversary|", "in order, or late and reordered"},
    {"XIO_AMDGPU_SEED", &settings::seed, nullptr, 1, 4294967295, 1, "", "what the adversary chooses by"},
    {"XIO_AMDGPU_HDP", &settings::hdp, nullptr, 0, 1, 1, "",
     "1: with the adversary, the host data path holds what others write until it is flushed"},
    {"XIO_AMDGPU_UNWRITTEN", &settings::unwritten, nullptr, 0, 1, 1, "",
     "1: a register that was never written and decides something ends the kernel"},
    {"XIO_AMDGPU_LOG", &settings::log, nullptr, 0, 3, 1, "",
     "on standard error: 1 queues and what was refused, 3 every call"},
    {"XIO_AMDGPU_COUNTS", nullptr, &settings::counts, 0, 0, 1, nullptr, "a file that gets a line of JSON per kernel"},
    {"XIO_AMDGPU_TIMES", nullptr, &settings::times, 0, 0, 1, nullptr,
     "a file that gets how often each instruction ran"},
    {"XIO_AMDGPU_IGNORE", &settings::ignored, nullptr, 0, 0xffffffff, 1, "",
     "the site of an ordering instruction that does nothing, 0 for none"},
    {"XIO_AMDGPU_IGNORE_LIST", nullptr, &settings::ignored_list, 0, 0, 1, nullptr,
     "a file with a site in each line, all of which do nothing"},
    {"XIO_AMDGPU_SITES", nullptr, &settings::sites, 0, 0, 1, nullptr,
     "a file that gets a line per ordering instruction that is reached"},
};

std::optional<std::string> read_number(const row& r, std::string_view text, std::uint64_t& out) {
  const bool hex = text.starts_with("0x");
  const char* const digits = text.data() + (hex ? 2 : 0);
  const auto [end, failed] = std::from_chars(digits, text.data() + text.size(), out, hex ? 16 : 10);
  if (failed == std::errc{} && end == text.data() + text.size() && out >= r.least && out <= r.most && out % r.step == 0)
    return {};
  return fmt::format("{}='{}' is no number from {} to {}{}; it says {}", r.name, text, r.least, r.most,
                     r.step == 1 ? "" : fmt::format(" in steps of {}", r.step), r.meaning);
}

std::optional<std::string> read_word(const row& r, std::string_view text, std::string& out) {
  if (r.words == nullptr) {
    out = text;
    if (text.front() == '/') return {};
    return fmt::format("{}='{}' is no path from the root; it says {}", r.name, text, r.meaning);
  }
  for (std::string_view left = r.words; !left.empty(); left.remove_prefix(left.find('|') + 1)) {
    if (left.substr(0, left.find('|')) != text) continue;
    out = text;
    return {};
  }
  return fmt::format("{}='{}' is not known; give one of {}", r.name, text,
                     std::string_view(r.words, std::strlen(r.words) - 1));
}

}  // namespace

std::optional<std::string> read_settings(settings& out, const std::function<const char*(const char*)>& look) {
  for (const row& r : k_rows) {
    const char* text = look(r.name);
    if (text == nullptr || *text == 0) continue;
    auto wrong = r.number != nullptr ? read_number(r, text, out.*r.number) : read_word(r, text, out.*r.word);
    if (wrong) return wrong;
  }
  return {};
}

std::string settings_text() {
  const settings usual;
  std::string out;
  for (const row& r : k_rows) {
    const std::string value = r.number != nullptr ? std::to_string(usual.*r.number) : usual.*r.word;
    const std::string values = r.number != nullptr  ? fmt::format("{}..{}", r.least, r.most)
                               : r.words == nullptr ? "/PATH"
                                                    : std::string(r.words, std::strlen(r.words) - 1);
    out += fmt::format("{:<26} {:<8} {:<14} {}\n", r.name, value, values, r.meaning);
  }
  return out;
}

const char* session_folder() {
  const char* folder = std::getenv("XIO_AMDGPU_SESSION");
  return folder != nullptr && *folder == '/' ? folder : nullptr;
}

}  // namespace amdgpu
