// SPDX-License-Identifier: MIT
// PATH[?block=BYTES&size=BYTES], as it stands behind "file:". The path may stand in double quotes, and then it may have
// any letters: a quote in it stands twice.
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

// Where the quotes end that begin at `at`: behind the closing one, or npos.
std::size_t end_of_quotes(const std::string& text, std::size_t at);

// Without quotes: behind the last '?' are settings where it is the last character or KEY= follows, else it belongs to
// the path. whole: the name for sentences. Throws XIO_ERR_ARG.
file_name parse_file_name(const std::string& rest, const std::string& whole);

// Settings in the name override those in the attributes.
xio_storage_attr_t with_name(const file_name& name, xio_storage_attr_t attr);

}  // namespace xio::nvme
