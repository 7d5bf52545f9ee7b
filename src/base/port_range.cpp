// SPDX-License-Identifier: MIT
#include "base/port_range.hpp"
#include "base/error.hpp"

namespace xio {

port_range port_range::parse(const std::string& text) {
  if (const auto r = read(text)) return *r;
  fail(XIO_ERR_CONFIG, "XIO_TCP_PORTS='{}' is no range of ports in 1..65535; give first-last such as 7000-7099", text);
}

}  // namespace xio
