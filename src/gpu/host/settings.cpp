// SPDX-License-Identifier: MIT
#include "gpu/host/settings.hpp"
#include "base/options.hpp"

namespace xio::host_exec {

const settings& config() {
  static const settings read = [] {
    const options o = options::from_environment();
    return settings{o.host_exec == option::host_exec::threads, o.host_wave == option::host_wave::lanes_32 ? 32u : 64u,
                    static_cast<unsigned>(o.host_cus), static_cast<std::size_t>(o.host_stack)};
  }();
  return read;
}

}  // namespace xio::host_exec
