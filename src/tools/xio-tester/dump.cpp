// SPDX-License-Identifier: MIT
// --dump-pattern: the bytes that a test would write, into a file. No GPU is needed.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "tools/xio-tester/pattern.hpp"
#include "tools/xio-tester/settings.hpp"

namespace xio::tester {

int run_dump(const dump_settings& s) {
  const pattern p = pattern::of(static_cast<u64>(s.seed), static_cast<u32>(s.block_bytes));
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(s.path.c_str(), "wb"), std::fclose);
  if (file == nullptr) fail(XIO_ERR_IO, "--dump-pattern: {} cannot be written: {}", s.path, errno_text(errno));
  std::vector<u8> block(s.block_bytes);
  for (std::uint64_t at = s.offset, end = s.offset + s.bytes; at < end;) {
    const std::uint64_t inside = at % s.block_bytes, n = std::min(s.block_bytes - inside, end - at);
    p.fill_block(block.data(), s.block_bytes, at / s.block_bytes);
    if (std::fwrite(block.data() + inside, 1, n, file.get()) != n)
      fail(XIO_ERR_IO, "--dump-pattern: {} cannot be written: {}", s.path, errno_text(errno));
    at += n;
  }
  if (std::fflush(file.get()) != 0)
    fail(XIO_ERR_IO, "--dump-pattern: {} cannot be written: {}", s.path, errno_text(errno));
  return 0;
}

}  // namespace xio::tester
