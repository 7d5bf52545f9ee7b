// SPDX-License-Identifier: MIT
#include "tools/visible_gpus.hpp"

#include <algorithm>

namespace xio::tools {

namespace {

// Of a list with commas. The runtimes stop at the first entry that names no GPU, as -1.
std::optional<std::string> entry_of(const std::string& list, int number) {
  for (std::size_t from = 0; from <= list.size(); --number) {
    const std::size_t comma = std::min(list.find(',', from), list.size());
    const std::string entry = list.substr(from, comma - from);
    if (entry.empty() || entry.front() == '-') return std::nullopt;
    if (number == 0) return entry;
    from = comma + 1;
  }
  return std::nullopt;
}

}  // namespace

std::optional<visible_gpu> find_visible_gpu(
    const std::string& platform, int number,
    const std::function<std::optional<std::string>(const std::string& variable)>& value_of) {
  const bool hip = platform == "hip";
  visible_gpu found{hip ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES", std::to_string(number)};
  std::optional<std::string> list = value_of(found.variable);
  // AMD's runtime takes NVIDIA's variable where its own is not set, and an empty one for none; to NVIDIA's that shows
  // no GPU.
  if (hip && (!list || list->empty())) list = value_of("CUDA_VISIBLE_DEVICES");
  if (!list || (hip && list->empty())) return found;
  const std::optional<std::string> entry = entry_of(*list, number);
  if (!entry) return std::nullopt;
  found.entry = *entry;
  return found;
}

}  // namespace xio::tools
