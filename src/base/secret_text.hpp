// SPDX-License-Identifier: MIT
// A text that must not stay behind in memory: each copy is wiped when it goes.
#pragma once
#include <cstddef>
#include <cstring>
#include <string_view>
#include <vector>

namespace xio {

class secret_text {
 public:
  secret_text() = default;
  explicit secret_text(std::string_view text) : bytes_(text.begin(), text.end()) {}
  secret_text(const secret_text&) = default;
  secret_text(secret_text&&) noexcept = default;
  secret_text& operator=(secret_text other) noexcept {  // `other` takes the old bytes with it
    bytes_.swap(other.bytes_);
    return *this;
  }
  secret_text& operator=(std::string_view text) { return *this = secret_text(text); }
  ~secret_text() {
    if (!bytes_.empty()) explicit_bzero(bytes_.data(), bytes_.size());
  }

  bool empty() const { return bytes_.empty(); }
  std::size_t size() const { return bytes_.size(); }
  std::string_view view() const { return {bytes_.data(), bytes_.size()}; }

 private:
  std::vector<char> bytes_;
};

}  // namespace xio
