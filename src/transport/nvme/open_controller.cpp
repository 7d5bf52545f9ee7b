// SPDX-License-Identifier: MIT
// From a storage's name to its controller.
#include "base/error.hpp"
#include "transport/nvme/nvme.hpp"

namespace xio::nvme {

std::unique_ptr<controller> open_controller(const std::string& name, const xio_storage_attr_t& attr,
                                            const nvme_options& o, progress::machine& machine,
                                            const payload_agent& payload) {
  struct way {
    const char* scheme;
    const char* missing;  // what is not there behind the colon
    std::unique_ptr<controller> (*open)(const opening&);
  };
  constexpr way ways[] = {{"file", "path", open_file},
                          {"block", "path", open_block},
                          {"nvme", "address as 0000:01:00.0/1", open_vfio},
                          {"kmod", "address as 0000:01:00.0/1", open_kmod}};
  const std::size_t colon = name.find(':');
  const std::string scheme = colon == std::string::npos ? "" : name.substr(0, colon);
  for (const way& one : ways) {
    if (scheme != one.scheme) continue;
    const opening what{name, name.substr(colon + 1), attr, o, machine, payload};
    if (what.rest.empty())
      fail(XIO_ERR_ARG, "cannot open storage \"{}\": there is no {} after {}:", name, one.missing, scheme);
    return one.open(what);
  }
  fail(XIO_ERR_ARG, "cannot open storage \"{}\": its name must begin with file:, block:, nvme: or kmod:", name);
}

}  // namespace xio::nvme
