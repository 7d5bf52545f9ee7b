// SPDX-License-Identifier: MIT
// The cache of decoded code.
#include <deque>
#include <mutex>

#include "amdgpu/isa/decode.hpp"
#include "amdgpu/isa/disassembler.hpp"
#include "amdgpu/isa/sites.hpp"
#include "amdgpu/isa/workgroup.hpp"

namespace amdgpu {
namespace {

void refuse_illegal(wave& w, const operation& o) {
  stop(w, o, fault::kind::illegal, "these bytes are no instruction of this GPU");
}

void refuse_no_llvm(wave& w, const operation& o) {
  stop(w, o, fault::kind::unknown, disassembler::of(w.of->how.target, w.wave32).broken().c_str());
}

// In the number of a page for waves of 32 lanes.
constexpr std::uint64_t narrow = std::uint64_t{1} << 63;

struct cache {
  std::mutex lock;
  std::unordered_map<std::uint64_t, std::unique_ptr<code_page>> pages;
  // All that was ever decoded: a wave of another thread may be inside what a slot no longer holds.
  std::deque<operation> made;
};

cache& the_cache() {
  static cache* const only = new cache;  // never freed: threads may outlive static objects
  return *only;
}

}  // namespace

const code_page* page_of(std::uint64_t address, bool wave32) {
  // Calls go from page to page: each thread remembers some, as pages are never freed.
  struct entry {
    std::uint64_t number = ~std::uint64_t{0};
    const code_page* page = nullptr;
  };
  static thread_local std::array<entry, 64> recent;
  const std::uint64_t number = address / code_page::bytes | (wave32 ? narrow : 0);
  entry& e = recent[number % recent.size()];
  if (e.number == number) return e.page;
  cache& c = the_cache();
  const std::lock_guard held(c.lock);
  auto& page = c.pages[number];
  if (!page) page = std::make_unique<code_page>();
  e = {number, page.get()};
  return e.page;
}

const operation* decoded(const code_page* page, const wave& w, const std::uint32_t* code, std::uint64_t left) {
  const std::uint64_t pc = w.pc;
  auto& slot = const_cast<code_page*>(page)->slot[pc % code_page::bytes / 4];
  const operation* known = slot.load(std::memory_order_acquire);
  if (known && same_bytes(*known, code, left)) return known;
  cache& c = the_cache();
  const std::lock_guard held(c.lock);
  operation& made = c.made.emplace_back();
  made.raw[0] = code[0];
  disassembler& reader = disassembler::of(w.of->how.target, w.wave32);
  if (reader.broken().empty()) {
    std::string text;
    const std::size_t bytes = reader.read(code, left, pc, text);
    made.run = refuse_illegal;
    if (bytes > 0) made = make_operation(text, code, static_cast<unsigned>(bytes), w.of->how.target);
  } else {
    made.run = refuse_no_llvm;
  }
  look_at_site(made, w);
  slot.store(&made, std::memory_order_release);
  return &made;
}

void forget_code(std::uint64_t base, std::uint64_t bytes) {
  cache& c = the_cache();
  const std::lock_guard held(c.lock);
  for (auto& [number, page] : c.pages) {
    const std::uint64_t start = (number & ~narrow) * code_page::bytes;
    if (start >= base + bytes || start + code_page::bytes <= base) continue;
    for (auto& slot : page->slot) slot.store(nullptr, std::memory_order_release);
  }
}

}  // namespace amdgpu
