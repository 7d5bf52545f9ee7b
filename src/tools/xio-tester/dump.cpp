// SPDX-License-Identifier: MIT
// --dump-pattern: the bytes that a test would write, into a file. No GPU is needed.
#include <algorithm>
#include <vector>

#include "tools/new_file.hpp"
#include "tools/xio-tester/pattern.hpp"
#include "tools/xio-tester/settings.hpp"

namespace xio::tester {

int run_dump(const dump_settings& s) {
  const pattern p = pattern::of(static_cast<u64>(s.seed), static_cast<u32>(s.block_bytes));
  tools::new_file file("--dump-pattern", s.path);
  std::vector<u8> block(s.block_bytes);
  for (std::uint64_t at = s.offset, end = s.offset + s.bytes; at < end;) {
    const std::uint64_t inside = at % s.block_bytes, n = std::min(s.block_bytes - inside, end - at);
    p.fill_block(block.data(), s.block_bytes, at / s.block_bytes);
    file.write(block.data() + inside, n);
    at += n;
  }
  file.keep();
  return 0;
}

}  // namespace xio::tester
