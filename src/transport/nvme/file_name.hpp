// SPDX-License-Identifier: MIT
// "PATH[?block=BYTES&size=BYTES]", as it stands behind "file:".
#pragma once
#include <cstdint>
#include <string>

#include "xio/xio.h"

namespace xio::nvme {

struct file_name {
  std::string path;
  std::uint32_t block_bytes = 0;  // 0: the name does not say
  std::uint64_t bytes = 0;
};

// Behind the last '?' are settings where it is the last character or KEY= follows, else it belongs to the path. whole:
// the name for sentences. Throws XIO_ERR_ARG.
file_name parse_file_name(const std::string& rest, const std::string& whole);

// What the name says goes before what the attributes do.
xio_storage_attr_t with_name(const file_name& name, xio_storage_attr_t attr);

}  // namespace xio::nvme
