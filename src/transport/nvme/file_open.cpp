// SPDX-License-Identifier: MIT
#include <filesystem>

#include "transport/nvme/file_controller.hpp"
#include "transport/nvme/file_name.hpp"

namespace xio::nvme {

std::unique_ptr<controller> open_file(const opening& what) {
  if (what.opts.backend == option::backend::hw)
    fail(XIO_ERR_UNSUPPORTED, "cannot open {}: a file has no hardware behind it; set XIO_BACKEND=auto or model",
         what.name);
  const software::devices* devices = software::built_in();
  if (devices == nullptr)
    fail(XIO_ERR_UNSUPPORTED, "cannot open {}: XIO was built with --disable-model; build it without", what.name);
  const file_name name = parse_file_name(what.rest, what.name);
  std::error_code none;
  const bool device = std::filesystem::is_block_file(name.path, none);
  const xio_storage_attr_t attr = device ? attr_of_free_device(what, name.path) : what.attr;
  return std::make_unique<file_controller>(*devices, name.path, with_name(name, attr), what.opts, what.machine,
                                           what.payload);
}

}  // namespace xio::nvme
