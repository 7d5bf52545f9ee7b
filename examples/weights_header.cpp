// SPDX-License-Identifier: MIT
// By itself, because not every compiler of kernels takes nlohmann's JSON.
#include "weights_header.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

std::uint64_t bytes_of(const std::string& type) {
  for (const auto& [bytes, types] : {std::pair{1, " BOOL U8 I8 F8_E4M3 F8_E5M2 "}, std::pair{2, " I16 U16 F16 BF16 "},
                                     std::pair{4, " I32 U32 F32 "}, std::pair{8, " I64 U64 F64 "}})
    if (type.find(' ') == std::string::npos && std::string_view(types).find(" " + type + " ") != std::string_view::npos)
      return static_cast<std::uint64_t>(bytes);
  return 0;
}

}  // namespace

std::vector<piece> read_header(const std::vector<unsigned char>& file) {
  const auto must = [](bool good, const std::string& what) {
    if (!good) throw std::runtime_error(what);
  };
  std::uint64_t length = 0;
  for (std::size_t i = std::min<std::size_t>(8, file.size()); i > 0; --i) length = length << 8 | file[i - 1];
  must(file.size() >= 8 && length <= file.size() - 8, "its header is longer than the file");
  const auto header = nlohmann::json::parse(file.data() + 8, file.data() + 8 + length);
  std::vector<piece> all;
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    const std::string its = "tensor '" + name + "' has ";
    std::uint64_t bytes = bytes_of(tensor.at("dtype").get<std::string>());
    must(bytes != 0, its + "a type that is not known");
    for (const auto& n : tensor.at("shape"))
      must(n.is_number_unsigned() && !__builtin_mul_overflow(bytes, n.get<std::uint64_t>(), &bytes),
           its + "no good shape");
    const auto& from = tensor.at("data_offsets").at(0);
    const auto& to = tensor.at("data_offsets").at(1);
    must(from.is_number_unsigned() && to.is_number_unsigned() && to.get<std::uint64_t>() <= file.size() - 8 - length &&
             from.get<std::uint64_t>() <= to.get<std::uint64_t>() &&
             to.get<std::uint64_t>() - from.get<std::uint64_t>() == bytes,
         its + "offsets beyond the file, or not the bytes of its shape");
    all.push_back({8 + length + from.get<std::uint64_t>(), bytes});
  }
  std::sort(all.begin(), all.end(),
            [](const piece& a, const piece& b) { return a.at != b.at ? a.at < b.at : a.bytes < b.bytes; });
  all.push_back({file.size(), 0});
  std::uint64_t end = 8 + length;
  for (const piece& p : all) {
    must(p.at == end, "tensors overlap, or leave a gap, at byte " + std::to_string(end));
    end += p.bytes;
  }
  return all;
}
