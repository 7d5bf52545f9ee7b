// SPDX-License-Identifier: MIT
#include "ctx/call_text.hpp"

#include <fmt/core.h>

#include <bit>

#include "ctx/failure_text.hpp"
#include "ctx/team_text.hpp"
#include "xio/device/impl/amo.hpp"

namespace xio {
namespace {

using kind = dev::call_kind;

std::string atomic_name(std::uint32_t number) {
  static constexpr const char* names[] = {"fetch", "set", "compare_swap", "add", "and", "or", "xor"};
  const bool fetches = number >= dev::k_call_fetches;
  const auto op = static_cast<dev::amo>(number % dev::k_call_fetches);
  if (static_cast<std::size_t>(op) >= std::size(names)) return "an atomic";
  if (fetches && op == dev::amo::set) return "xio_atomic_swap";
  const bool said = op == dev::amo::fetch || op == dev::amo::compare_swap;  // by their names
  return fmt::format("xio_atomic_{}{}", fetches && !said ? "fetch_" : "", names[static_cast<std::size_t>(op)]);
}

}  // namespace

std::string call_name(std::uint32_t number) {
  if (number >= static_cast<std::uint32_t>(kind::atomic))
    return atomic_name(number - static_cast<std::uint32_t>(kind::atomic));
  switch (static_cast<kind>(number)) {
    case kind::put: return "xio_put";
    case kind::get: return "xio_get";
    case kind::put_value: return "xio_p";
    case kind::get_value: return "xio_g";
    case kind::put_tile: return "xio_put_2d";
    case kind::get_tile: return "xio_get_2d";
    case kind::put_strided: return "xio_iput";
    case kind::get_strided: return "xio_iget";
    case kind::put_signal: return "xio_put_signal";
    case kind::signal_op: return "xio_signal_op";
    case kind::signal_fetch: return "xio_signal_fetch";
    case kind::put_counter: return "xio_put_counter";
    case kind::put_signal_counter: return "xio_put_signal_counter";
    case kind::put_packet: return "xio_put_packet";
    case kind::test_packet: return "xio_test_packet";
    case kind::put_imm: return "xio_put_imm";
    case kind::test_imm: return "xio_imm_test";
    case kind::storage_read: return "xio_read";
    case kind::storage_write: return "xio_write";
    case kind::storage_compare: return "xio_compare";
    case kind::storage_write_zeroes: return "xio_write_zeroes";
    case kind::storage_sync: return "xio_storage_sync";
    case kind::fence_pe: return "xio_fence_pe";
    case kind::quiet_pe: return "xio_quiet_pe";
    case kind::ctx_create_wg: return "xio_ctx_create_wg";
    case kind::ctx_destroy_wg: return "xio_ctx_destroy_wg";
    case kind::test_until: return "xio_test_until";
    case kind::wait_until: return "xio_wait_until";
    case kind::wait_until_all: return "xio_wait_until_all";
    case kind::wait_until_any: return "xio_wait_until_any";
    case kind::wait_until_some: return "xio_wait_until_some";
    case kind::signal_wait_until: return "xio_signal_wait_until";
    case kind::wait_counter: return "xio_wait_counter";
    case kind::wait_packet: return "xio_wait_packet";
    case kind::imm_wait: return "xio_imm_wait";
    case kind::sync_all: return "a barrier or sync of all";
    default: return "a call of a kernel";
  }
}

std::string value_text(std::uint64_t value, std::uint32_t compare) {
  if ((compare & dev::k_compares_float) != 0) return fmt::format("{}", std::bit_cast<double>(value));
  return (compare & dev::k_compares_signed) != 0 ? std::to_string(static_cast<std::int64_t>(value))
                                                 : std::to_string(value);
}

namespace {

std::string place_of(std::uint64_t at, const call_place& here) {
  const std::uint64_t offset = at - here.heap;
  return offset < here.heap_bytes ? fmt::format("{:#x} (heap + {:#x})", at, offset) : fmt::format("{:#x}", at);
}

std::string named(const dev::call_record& r, const call_place& here) {
  std::string text = call_name(r.kind);
  if (is_transfer(r)) {
    text += " of " + transfer_text(r, here.storage);
    return r.local != 0 ? text + fmt::format(", buffer {:#x}", r.local) : text;
  }
  if (r.bytes != 0) text += fmt::format(" of {} bytes", r.bytes);
  if (r.address != 0) text += fmt::format(" at {}", place_of(r.address, here));
  if (r.local != 0) text += fmt::format(", buffer {:#x}", r.local);
  if (r.pe != dev::k_no_pe) text += fmt::format(", PE {}", static_cast<std::int32_t>(r.pe));
  return text;
}

std::string missed_text(const dev::call_record& r, const call_place& here) {
  static constexpr const char* signs[] = {"==", "!=", ">", ">=", "<", "<="};
  constexpr const char* cure = "look whether its peers are alive, or raise XIO_TIMEOUT_MS";
  const std::string name = call_name(r.kind);
  switch (static_cast<kind>(r.kind)) {
    case kind::sync_all:
      return fmt::format(
          "{}: PE {} has not come to number {} within XIO_TIMEOUT_MS, {} was its last; look whether it "
          "is alive and calls it as often as this PE",
          name, r.pe, r.wanted, r.found);
    case kind::imm_wait:
      return fmt::format("{}: no immediate of PE {} has come within XIO_TIMEOUT_MS; {}", name, r.pe, cure);
    case kind::team_wait: return missing_member_text(r);
    case kind::wait_packet:
      return fmt::format("{}: the packet of flag {} at {} has not come within XIO_TIMEOUT_MS; {}", name, r.wanted,
                         place_of(r.address, here), cure);
    default: break;
  }
  const std::uint32_t sign = r.compare & ~(dev::k_compares_signed | dev::k_compares_float);
  const std::string words = r.words > 1 ? fmt::format("{} words from {}", r.words, place_of(r.address, here))
                                        : fmt::format("the word at {}", place_of(r.address, here));
  return fmt::format("{}: {} did not become {} {} within XIO_TIMEOUT_MS, it held {}; {}", name, words,
                     sign < std::size(signs) ? signs[sign] : "?", value_text(r.wanted, r.compare),
                     value_text(r.found, r.compare), cure);
}

}  // namespace

std::string call_text(const dev::call_record& r, const call_place& here) {
  const auto status = static_cast<xio_status_t>(static_cast<std::int32_t>(r.status));
  const bool waits =
      r.kind >= static_cast<std::uint32_t>(kind::wait_until) && r.kind <= static_cast<std::uint32_t>(kind::sync_all);
  if (status == XIO_ERR_TIMEOUT && waits) return missed_text(r, here);
  if (static_cast<kind>(r.kind) == kind::team_call) return refused_text(r);
  const bool asked = status == XIO_ERR_ARG || (status == XIO_ERR_STATE && is_transfer(r) && here.storage == nullptr);
  const std::string wrong = asked ? wrong_argument(r, here.storage) : "";
  return named(r, here) + ": " + (wrong.empty() ? refusal_text(status, here.n_pes) : wrong);
}

}  // namespace xio
