// SPDX-License-Identifier: MIT
// The ports of XIO_TCP_PORTS: those at which this machine's firewall lets others in.
#pragma once
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace xio {

struct port_range {
  std::uint16_t first = 0, last = 0;  // 0: one that the system chooses

  // "7000-7099", "7000", or empty for any.
  static std::optional<port_range> read(std::string_view text) {
    if (text.empty()) return port_range{};
    const auto dash = text.find('-');
    port_range r{port_in(text.substr(0, dash)), 0};
    r.last = dash == std::string_view::npos ? r.first : port_in(text.substr(dash + 1));
    if (r.first == 0 || r.last < r.first) return {};
    return r;
  }
  // The same; throws XIO_ERR_CONFIG with the variable.
  static port_range parse(const std::string& text);
  bool any() const { return first == 0; }

  // Gives the result of listen(port) for the first port that is free; none with the last errno. An errno that does not
  // say that the port is taken ends the search.
  template <class Listen>
  auto first_free(Listen&& listen) const {
    for (int port = first;; ++port) {
      auto got = listen(static_cast<std::uint16_t>(port));
      if (got || errno != EADDRINUSE || port >= last) return got;
    }
  }

 private:
  // 0: none.
  static std::uint16_t port_in(std::string_view text) {
    std::uint16_t port = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), port);
    return ec == std::errc() && end == text.data() + text.size() ? port : std::uint16_t{0};
  }
};

}  // namespace xio
