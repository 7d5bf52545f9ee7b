// SPDX-License-Identifier: MIT
#include "proxy/proxy_queue.hpp"

#include "proxy/decoding.hpp"

namespace xio::proxy {

namespace w = wire::proxy;

namespace {

// Looked for at once; the rest is found in the next turn.
constexpr std::uint64_t k_most_news = 256;

}  // namespace

proxy_queue::proxy_queue(const proxy_memory& memory, std::uint64_t max_message)
    : memory_(memory), max_message_(max_message), producer_index_(memory.start), next_(memory.start) {}

const std::uint64_t* proxy_queue::slot(std::uint64_t ticket) const {
  const std::uint64_t mask = (std::uint64_t{1} << memory_.depth_log2) - 1;
  return memory_.slots + (ticket & mask) * w::k_entry_words;
}

op_error proxy_queue::poll_doorbells() {
  for (const std::uint64_t end = producer_index_ + k_most_news; producer_index_ != end; ++producer_index_) {
    const std::uint32_t wanted = w::generation(producer_index_, memory_.depth_log2);
    std::uint64_t words[w::k_entry_words];
    // Mostly there is none, which the first word tells.
    for (const std::size_t count : {std::size_t{1}, std::size_t{w::k_entry_words}}) {
      memory_.entries.load(words, slot(producer_index_), count);
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t found = w::high(words[i]);
        if (found == wanted) continue;
        // Of the lap before, or of none at all.
        return found == wanted - 1 || found == 0 ? op_error{} : broken(rule::entry_phase);
      }
    }
  }
  return {};
}

op_error proxy_queue::fetch(op& out) {
  begin_decoding(out, next_);
  std::uint64_t words[w::k_entry_words];
  memory_.entries.load(words, slot(next_), w::k_entry_words);
  for (std::uint32_t i = 0; i < w::k_entry_words; ++i) entry_[i] = w::low(words[i]);
  ++next_;
  const std::uint32_t op = w::head_op(entry_[0]), flags = w::head_flags(entry_[0]);
  out.signalled = (flags & w::k_signaled) != 0;
  out.wire_opcode = static_cast<std::uint8_t>(op);
  out.remote = w::join(entry_[2], entry_[3]);
  out.remote_key = entry_[4];
  if (w::head_reserved(entry_[0]) != 0) return broken(rule::entry_reserved);
  if (op < w::op_write || op > w::op_masked_swap) return broken(rule::entry_opcode);
  const std::uint32_t allowed = w::k_signaled | (op >= w::op_fetch_add ? w::k_narrow : w::k_inline);
  if ((flags & ~allowed) != 0) return broken(rule::entry_flags);
  return op >= w::op_fetch_add ? decode_atomic(out) : decode_copy(out);
}

op_error proxy_queue::decode_copy(op& out) const {
  const bool read = out.wire_opcode == w::op_read;
  const bool inlined = (w::head_flags(entry_[0]) & w::k_inline) != 0;
  out.what = read ? verb::read : verb::write;
  out.has_immediate = out.wire_opcode == w::op_write_imm;
  out.bytes = entry_[1];
  const std::uint32_t immediate = inlined ? entry_[5] : entry_[8];
  if (immediate != 0 && !out.has_immediate) return broken(rule::entry_reserved);
  out.immediate = immediate;
  if (inlined) {
    if (read || out.bytes > w::k_inline_bytes) return wrong_length();
    out.is_inline = true;
    std::memcpy(out.inlined.data(), entry_ + w::k_inline_at, out.bytes);
    return {};
  }
  for (std::uint32_t i = 9; i < w::k_entry_words; ++i)
    if (entry_[i] != 0) return broken(rule::entry_reserved);
  if (out.bytes == 0 || out.bytes > max_message_) return wrong_length();
  out.spans[0] = span_ref{w::join(entry_[6], entry_[7]), entry_[1], entry_[5]};
  out.span_count = 1;
  return {};
}

op_error proxy_queue::decode_atomic(op& out) const {
  const std::uint8_t width = (w::head_flags(entry_[0]) & w::k_narrow) != 0 ? 4 : 8;
  const std::uint64_t first = w::join(entry_[6], entry_[7]), second = w::join(entry_[8], entry_[9]);
  const std::uint64_t swap = w::join(entry_[10], entry_[11]), compare = w::join(entry_[12], entry_[13]);
  if (entry_[15] != 0) return broken(rule::entry_reserved);
  out.what = verb::atomic;
  out.bytes = width;
  out.spans[0] = span_ref{w::join(entry_[1], entry_[14]), width, entry_[5]};
  out.span_count = 1;
  if (out.wire_opcode != w::op_masked_swap && (swap != 0 || compare != 0)) return broken(rule::entry_reserved);
  if (out.wire_opcode < w::op_masked_add && width != 8) return broken(rule::entry_modifier);
  switch (out.wire_opcode) {
    case w::op_fetch_add:
      if (second != 0) return broken(rule::entry_reserved);
      out.change = fetch_add(first, width);
      break;
    case w::op_compare_swap: out.change = compare_swap(second, first, width); break;
    case w::op_masked_add: out.change = atomic_change{true, width, first, second, 0, 0, 0, false}; break;
    default: out.change = atomic_change{false, width, first, 0, second, swap, compare, false};
  }
  return {};
}

void proxy_queue::complete(const receipt& r) {
  if (r.signalled) memory_.completions.publish(memory_.completion, r.first + r.slots);
}

// Everything before it has ended well, whether it asked for a completion or not.
void proxy_queue::complete_in_error(const receipt& r, op_error f) {
  const std::uint64_t word = w::error_word(status_of<w::status>(f.what), static_cast<std::uint32_t>(f.why));
  memory_.completions.write(memory_.completion + 1, &word, 1);
  // The count never goes back: a wrong generation names no entry, and the entry fetched last may have ended well.
  const std::uint64_t counted = memory_.completions.load(memory_.completion);
  const std::uint64_t count = r.slots != 0 ? std::max(r.first, counted) : counted;
  memory_.completions.publish(memory_.completion, count | w::k_has_failed);
}

}  // namespace xio::proxy
