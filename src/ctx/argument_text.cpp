// SPDX-License-Identifier: MIT
#include "ctx/argument_text.hpp"

#include <fmt/core.h>

#include "xio/wire/nvme.hpp"
#include "xio/xio.h"

namespace xio {
namespace {

using kind = dev::call_kind;

constexpr std::size_t k_name_max = 48;  // the end of a path tells files apart

std::string shortened(const std::string& name) {
  return name.size() <= k_name_max ? name : "..." + name.substr(name.size() - k_name_max);
}

std::string wrong_transfer(const dev::call_record& r, const storage_place* on) {
  if (on == nullptr) return r.pe == 0 ? "the storage is null; open one by xio_storage_open" : "";
  const bool changes =
      static_cast<kind>(r.kind) == kind::storage_write || static_cast<kind>(r.kind) == kind::storage_write_zeroes;
  const std::uint64_t offset = r.address, block = on->block_bytes;
  if (changes && on->read_only) return "the storage was opened with XIO_STORAGE_READ_ONLY";
  if (offset % block != 0) return fmt::format("the offset is no multiple of its block of {} bytes", block);
  if (r.bytes % block != 0) return fmt::format("the size is no multiple of its block of {} bytes", block);
  if (offset > on->bytes || r.bytes > on->bytes - offset)
    return fmt::format("it ends behind the storage's {} bytes", on->bytes);
  if (r.local == 0) return "the buffer is null";
  return fmt::format("the buffer's address is no multiple of {}", wire::nvme::k_prp_align);
}

// Of a word that the record names: null or misaligned; "" if neither.
std::string wrong_word(const dev::call_record& r, const char* what) {
  if (r.address == 0) return fmt::format("the {}'s address is null", what);
  if (r.bytes != 0 && r.address % r.bytes != 0)
    return fmt::format("the {}'s address is no multiple of its {} bytes", what, r.bytes);
  return "";
}

std::string or_else(const std::string& first, const char* second) { return first.empty() ? second : first; }

constexpr const char* k_no_signal_op = "the signal's op is neither XIO_SIGNAL_SET nor XIO_SIGNAL_ADD";
constexpr const char* k_null_buffer = "the local buffer is null";

std::string wrong_copy(const dev::call_record& r, const char* else_wrong) {
  if (r.address == 0) return "the symmetric address is null";
  return r.local == 0 ? k_null_buffer : else_wrong;
}

std::string wrong_signal(const dev::call_record& r) {
  if (r.local != 0) return wrong_copy(r, "");
  // The record is of the signal, or of a copy that has no buffer.
  if (r.bytes != sizeof(std::uint64_t)) return k_null_buffer;
  return or_else(wrong_word(r, "signal"), static_cast<kind>(r.kind) == kind::signal_op
                                              ? k_no_signal_op
                                              : "the signal's op is neither XIO_SIGNAL_SET nor XIO_SIGNAL_ADD, or the "
                                                "local buffer is null");
}

std::string wrong_counter(const dev::call_record& r) {
  if (r.pe != dev::k_no_pe) return wrong_signal(r);
  return wrong_word(r, "counter");
}

std::string wrong_packet(const dev::call_record& r) {
  if (r.bytes == 0 || r.bytes > 64 || r.bytes % 4 != 0) return "a packet has 4 to 64 bytes, a multiple of 4";
  if (r.address == 0 || r.address % 8 != 0) return "the packet's address is null or no multiple of 8";
  return "the local buffer is null, or its address no multiple of 4";
}

}  // namespace

bool is_transfer(const dev::call_record& r) {
  return r.kind >= static_cast<std::uint32_t>(kind::storage_read) &&
         r.kind <= static_cast<std::uint32_t>(kind::storage_write_zeroes);
}

std::string transfer_text(const dev::call_record& r, const storage_place* on) {
  return fmt::format("{} bytes at offset {} of {}", r.bytes, r.address,
                     on != nullptr ? shortened(on->name) : "a storage that is not open");
}

std::string wrong_argument(const dev::call_record& r, const storage_place* on) {
  if (is_transfer(r)) return wrong_transfer(r, on);
  if (r.kind >= static_cast<std::uint32_t>(kind::atomic)) return wrong_word(r, "word");
  switch (static_cast<kind>(r.kind)) {
    case kind::put:
    case kind::get:
    case kind::put_imm: return wrong_copy(r, "");
    case kind::put_tile:
    case kind::get_tile: return wrong_copy(r, "a pitch is less than the width of a row, or the rows leave all memory");
    case kind::put_strided:
    case kind::get_strided: return wrong_copy(r, "a stride is less than 1, or too large");
    case kind::put_value:
    case kind::get_value: return wrong_word(r, "value");
    case kind::put_signal:
    case kind::signal_op:
    case kind::signal_fetch: return wrong_signal(r);
    case kind::wait_counter: return wrong_word(r, "counter");
    case kind::put_counter:
    case kind::put_signal_counter: return wrong_counter(r);
    case kind::put_packet:
    case kind::test_packet:
    case kind::wait_packet: return wrong_packet(r);
    case kind::test_imm:
    case kind::imm_wait: return "the place for the immediate is null";
    case kind::ctx_destroy_wg: return "this context is not of that ctx's pool";
    case kind::test_until:
    case kind::wait_until:
    case kind::signal_wait_until:
    case kind::wait_until_all:
      return or_else(wrong_word(r, "word"), "the comparison is none of XIO_CMP_EQ to XIO_CMP_LE");
    case kind::wait_until_any:
    case kind::wait_until_some:
      return or_else(
          wrong_word(r, "word"),
          "the comparison is none of XIO_CMP_EQ to XIO_CMP_LE, or the values or the place for an index are null");
    default: return "";
  }
}

}  // namespace xio
