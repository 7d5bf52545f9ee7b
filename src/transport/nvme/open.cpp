// SPDX-License-Identifier: MIT
// From a storage's name to its controller.
#include "base/error.hpp"
#include "transport/nvme/nvme.hpp"

#if HAVE_CONFIG_H
#include "config.h"
#endif
#if XIO_ENABLE_MODEL
#include "transport/nvme/file_controller.hpp"
#endif

namespace xio::nvme {

std::unique_ptr<controller> open(const std::string& name, const xio_storage_attr_t& attr, const options& o,
                                 model::machine& machine, const payload_agent& payload) {
  const std::size_t colon = name.find(':');
  const std::string scheme = colon == std::string::npos ? "" : name.substr(0, colon);
  if (scheme == "nvme" || scheme == "kmod")
    fail(XIO_ERR_UNSUPPORTED, "cannot open {}: this version drives no NVMe hardware; use file:PATH", name);
  if (scheme != "file") fail(XIO_ERR_ARG, "cannot open storage \"{}\": its name must begin with file:", name);
  const std::string path = name.substr(colon + 1);
  if (path.empty()) fail(XIO_ERR_ARG, "cannot open storage \"{}\": there is no path after file:", name);
  if (o.backend == "hw")
    fail(XIO_ERR_UNSUPPORTED, "cannot open {}: a file has no hardware behind it; set XIO_BACKEND=auto or model", name);
#if XIO_ENABLE_MODEL
  return std::make_unique<file_controller>(path, attr, o, machine, payload);
#else
  (void)attr;
  (void)machine;
  (void)payload;
  fail(XIO_ERR_UNSUPPORTED, "cannot open {}: XIO was built with --disable-model; build it without", name);
#endif
}

}  // namespace xio::nvme
