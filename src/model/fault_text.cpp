// SPDX-License-Identifier: MIT
#include "model/fault_text.hpp"

#include <errno.h>

#include <charconv>
#include <limits>

#include "base/error.hpp"
#include "proxy/queue_numbers.hpp"

namespace xio::model {
namespace {

namespace w = wire::nvme;

template <class T>
struct named {
  std::string_view name;
  T what;
};

constexpr named<rdma::fault_rule::kind> k_nic_by_chance[] = {
    {"drop=", rdma::fault_rule::kind::drop},
    {"dup=", rdma::fault_rule::kind::twice},
    {"reorder=", rdma::fault_rule::kind::swap},
    {"delay=", rdma::fault_rule::kind::delay},
};
constexpr named<rdma::fault_rule::kind> k_nic_by_number[] = {
    {"error@", rdma::fault_rule::kind::error},   {"down@", rdma::fault_rule::kind::down},
    {"fatal@", rdma::fault_rule::kind::fatal},   {"skip@", rdma::fault_rule::kind::skip},
    {"astray@", rdma::fault_rule::kind::astray}, {"moved@", rdma::fault_rule::kind::moved},
};
constexpr named<rdma::outcome> k_nic_errors[] = {
    {"local_length", rdma::outcome::local_length},
    {"local_protection", rdma::outcome::local_protection},
    {"remote_invalid_request", rdma::outcome::remote_invalid_request},
    {"remote_access", rdma::outcome::remote_access},
    {"remote_operation", rdma::outcome::remote_operation},
    {"retry_exceeded", rdma::outcome::retry_exceeded},
    {"rnr_retry_exceeded", rdma::outcome::rnr_retry_exceeded},
};
constexpr named<nvme::fault::kind> k_drive_faults[] = {
    {"error", nvme::fault::kind::status},  {"delay", nvme::fault::kind::delay}, {"lose", nvme::fault::kind::lose},
    {"die", nvme::fault::kind::die},       {"file", nvme::fault::kind::file},   {"skip", nvme::fault::kind::skip},
    {"astray", nvme::fault::kind::astray},
};
constexpr named<std::uint32_t> k_drive_errors[] = {
    {"write_fault", w::k_write_fault},
    {"unrecovered_read", w::k_unrecovered_read},
    {"compare_failure", w::k_compare_failure},
    {"data_transfer_error", w::k_data_transfer_error},
    {"internal_error", w::k_internal_error},
    {"aborted", w::k_aborted},
    {"lba_out_of_range", w::k_lba_out_of_range},
    {"capacity_exceeded", w::k_capacity_exceeded},
    {"namespace_not_ready", w::k_namespace_not_ready},
    {"write_protected", w::k_namespace_write_protected},
    {"transient_transport_error", w::k_transient_transport_error},
};
constexpr named<int> k_file_errors[] = {{"no_space", ENOSPC}, {"io_error", EIO}, {"too_big", EFBIG}};
constexpr named<w::opcode> k_commands[] = {
    {"read", w::opcode::read},   {"write_zeroes", w::opcode::write_zeroes}, {"write", w::opcode::write},
    {"flush", w::opcode::flush}, {"compare", w::opcode::compare},
};

class parser {
 public:
  explicit parser(const std::string& text) : text_(text) {}

  fault_rules run() {
    for (;;) {
      item();
      if (at_ == text_.size()) return std::move(out_);
      expect(',');
    }
  }

 private:
  [[noreturn]] void bad(const char* why) const {
    fail(XIO_ERR_CONFIG,
         "XIO_MODEL_FAULTS='{}': {} at character {}; give items such as drop=0.01, dup=0.01, reorder=0.01, "
         "delay=0.01:2ms, error@1000=remote_access, down@5000, nvme_error@10=unrecovered_read or seed=7, with commas "
         "between them",
         text_, why, at_ + 1);
  }
  bool take(std::string_view word) {
    if (std::string_view(text_).substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void expect(char c) {
    if (at_ == text_.size() || text_[at_] != c) bad("something that does not belong there");
    ++at_;
  }
  std::uint64_t number(int base = 10) {
    std::uint64_t v = 0;
    const auto [end, ec] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v, base);
    if (ec != std::errc()) bad("no whole number");
    at_ = static_cast<std::size_t>(end - text_.data());
    return v;
  }
  double chance() {
    double v = 0;
    const char* first = text_.data() + at_;
    if (at_ == text_.size() || ((*first < '0' || *first > '9') && *first != '.')) bad("no chance between 0 and 1");
    const auto [end, ec] = std::from_chars(first, text_.data() + text_.size(), v, std::chars_format::fixed);
    if (ec != std::errc() || !(v >= 0 && v <= 1)) bad("no chance between 0 and 1");
    at_ = static_cast<std::size_t>(end - text_.data());
    return v;
  }
  std::chrono::microseconds duration() {
    const std::uint64_t v = number();
    if (v > 60'000'000) bad("a time of more than a minute");
    const std::uint64_t us = take("us") ? v : take("ms") ? v * 1000 : take("s") ? v * 1'000'000 : 0;
    if (us == 0 || us > 60'000'000) bad("no time between 1us and 60s");
    return std::chrono::microseconds(us);
  }
  template <class T, std::size_t N>
  bool take_one_of(const named<T> (&names)[N], T* out) {
    for (const auto& n : names)
      if (take(n.name)) {
        *out = n.what;
        return true;
      }
    return false;
  }
  template <class T, std::size_t N>
  T one_of(const named<T> (&names)[N], const char* otherwise) {
    T what{};
    if (!take_one_of(names, &what)) bad(otherwise);
    return what;
  }

  void item() {
    if (take("seed="))
      out_.seed = number();
    else if (take("nvme_"))
      drive_item();
    else if (take("sdma_skip@"))
      out_.moves.lost.push_back(number());
    else if (take("sdma_delay@"))
      late_move();
    else
      nic_item();
  }

  void late_move() {
    sdma::move_faults::late l{};
    l.nth = number();
    expect('=');
    l.wait = duration();
    out_.moves.delayed.push_back(l);
  }

  // --- NICs ---

  void nic_scopes(rdma::fault_rule& r) {
    while (take("/")) {
      if (r.pe < 0 && take("pe")) {
        const std::uint64_t v = number();
        if (v > std::numeric_limits<int>::max()) bad("no PE");
        r.pe = static_cast<int>(v);
      } else if (r.queue < 0 && take("queue")) {
        const std::uint64_t v = number();
        if (v >= rdma::k_orders) bad("no queue pair below 512");
        r.queue = static_cast<std::int64_t>(v);
      } else {
        bad("neither /peN nor /queueN");
      }
    }
  }
  void nic_item() {
    using kind = rdma::fault_rule::kind;
    rdma::fault_rule r;
    if (take_one_of(k_nic_by_chance, &r.what))
      r.chance = chance();
    else if (take_one_of(k_nic_by_number, &r.what))
      r.nth = number();
    else if (take("moved"))
      r.what = kind::moved;
    else
      bad("no known fault");
    if (r.what == kind::delay) {
      expect(':');
      r.wait = duration();
    } else if (r.what == kind::error) {
      expect('=');
      r.how = one_of(k_nic_errors, "no known error");
    } else if (r.what == kind::astray) {
      expect('=');
      const bool before = take("-");
      r.by = before ? 0 - number() : number();
    }
    nic_scopes(r);
    if (r.what == kind::moved && r.queue >= 0) bad("a queue pair, and memory is registered for all of them");
    out_.nic.push_back(r);
  }

  // --- Drives ---

  // @N: the Nth command of a queue. =P: each command by chance. Returns what stands before the rest.
  char drive_when(nvme::fault& f) {
    if (take("@")) {
      f.nth = number();
      return '=';
    }
    if (!take("=")) bad("neither @N nor =P");
    f.times = std::numeric_limits<std::uint32_t>::max();
    f.chance = chance();
    return ':';
  }
  std::uint32_t drive_status() {
    if (!take("0x")) return one_of(k_drive_errors, "no known error");
    const std::uint64_t v = number(16);
    if (v == 0 || v > 0x7ff) bad("no status from 0x1 to 0x7ff (type and code)");
    return static_cast<std::uint32_t>(v);
  }
  void drive_scopes(nvme::fault& f) {
    while (take("/")) {
      if (!f.queue && take("queue")) {
        const std::uint64_t v = number();
        if (v > 65533) bad("no queue below 65534");
        f.queue = static_cast<std::uint32_t>(v);
      } else if (f.first_lba == 0 && f.last_lba == ~std::uint64_t{0} && take("lba")) {
        f.first_lba = f.last_lba = number();
        if (take("-")) f.last_lba = number();
        if (f.last_lba < f.first_lba) bad("a range that ends before it begins");
      } else if (!f.opcode) {
        f.opcode = static_cast<std::uint8_t>(one_of(k_commands, "neither /queueN nor /lbaN-M nor a command"));
      } else {
        bad("neither /queueN nor /lbaN-M nor a command");
      }
    }
  }
  void drive_item() {
    using kind = nvme::fault::kind;
    if (take("shuffle")) {
      out_.shuffle = true;
      return;
    }
    nvme::fault f;
    f.opcode.reset();
    f.what = one_of(k_drive_faults, "no known fault of a drive");
    const char then = drive_when(f);
    if (f.what == kind::status || f.what == kind::delay || f.what == kind::file || f.what == kind::astray) expect(then);
    if (f.what == kind::status) f.status = drive_status();
    if (f.what == kind::delay) f.delay = duration();
    if (f.what == kind::file) f.error = one_of(k_file_errors, "neither no_space nor io_error nor too_big");
    if (f.what == kind::astray) f.lba = number();
    drive_scopes(f);
    out_.drive.push_back(f);
  }

  const std::string& text_;
  std::size_t at_ = 0;
  fault_rules out_;
};

}  // namespace

fault_rules parse_faults(const std::string& text) { return parser(text).run(); }

}  // namespace xio::model
