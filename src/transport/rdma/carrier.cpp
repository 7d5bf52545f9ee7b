// SPDX-License-Identifier: MIT
#include "transport/rdma/carrier.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/peer_word.hpp"

namespace xio::rdma {

namespace {

// PEs exchange these.
constexpr std::uint32_t k_auto = 0, k_hw = 1, k_model = 2;
static_assert(static_cast<std::uint32_t>(option::backend::automatic) == k_auto &&
              static_cast<std::uint32_t>(option::backend::hw) == k_hw &&
              static_cast<std::uint32_t>(option::backend::model) == k_model);

// Worlds of fewer PEs connect all: the first op to a PE costs a message to it and back, and memory is no concern.
constexpr std::size_t k_lazy_from = 64;

std::uint32_t wanted_of(const rdma_options& o) {
  switch (o.nic_executor) {
    case option::nic_executor::shm: return static_cast<std::uint32_t>(carrier::shm);
    case option::nic_executor::tcp: return static_cast<std::uint32_t>(carrier::tcp);
    case option::nic_executor::verbs: return static_cast<std::uint32_t>(carrier::verbs);
    case option::nic_executor::libfabric: return static_cast<std::uint32_t>(carrier::libfabric);
    case option::nic_executor::automatic: break;
  }
  // A named device, or a named entry of its GID table, is meant and no other.
  const bool named = !o.hca_list.empty() || o.rdma_gid_index;
  return named && o.backend != option::backend::model ? static_cast<std::uint32_t>(carrier::verbs) : k_auto;
}

carrier check_shm(const std::vector<carrier_offer>& all) {
  for (std::size_t pe = 0; pe < all.size(); ++pe)
    if (all[pe].mapped == 0)
      fail(XIO_ERR_CONFIG,
           "XIO_NIC_EXECUTOR=shm, but PE {} has peers on another machine; set it to tcp or verbs, or leave it auto",
           pe);
  return carrier::shm;
}

carrier check_verbs(const std::vector<carrier_offer>& all, int me, const std::string& why_not, const char* asked_by) {
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    if (all[pe].verbs != 0) continue;
    if (static_cast<int>(pe) == me) fail(XIO_ERR_UNSUPPORTED, "{} asks for an RDMA device: {}", asked_by, why_not);
    fail(XIO_ERR_PEER, "{} asks for an RDMA device and PE {} has none that works (or set XIO_BACKEND=model): {}",
         asked_by, pe, text_of(all[pe].why_no_verbs));
  }
  return carrier::verbs;
}

}  // namespace

const char* name_of(carrier c) {
  switch (c) {
    case carrier::shm: return "shm";
    case carrier::tcp: return "tcp";
    case carrier::libfabric: return "libfabric";
    case carrier::verbs: break;
  }
  return "verbs";
}

carrier choose_carrier(const std::vector<carrier_offer>& all, int me, const std::string& why_not) {
  bool mapped = true, verbs = true, slingshot = true;
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    if (all[pe].wanted != all[0].wanted || all[pe].backend != all[0].backend)
      fail(XIO_ERR_CONFIG, "XIO_NIC_EXECUTOR or XIO_BACKEND differ between PE 0 and PE {}; set them alike on every PE",
           pe);
    mapped &= all[pe].mapped != 0;
    verbs &= all[pe].verbs != 0;
    slingshot &= all[pe].slingshot != 0;
  }
  const carrier_offer& o = all[0];
  if (o.wanted == static_cast<std::uint32_t>(carrier::verbs))
    return check_verbs(all, me, why_not, "XIO_NIC_EXECUTOR=verbs, XIO_HCA_LIST or XIO_RDMA_GID_INDEX");
  if (o.wanted == static_cast<std::uint32_t>(carrier::shm)) return check_shm(all);
  if (o.wanted == static_cast<std::uint32_t>(carrier::tcp)) return carrier::tcp;
  if (o.wanted == static_cast<std::uint32_t>(carrier::libfabric)) return carrier::libfabric;
  // Where memory is mapped the software NIC costs less than a NIC that a host thread drives.
  if (o.backend != k_model && !verbs && slingshot && (!mapped || o.backend == k_hw)) return carrier::libfabric;
  if (o.backend == k_hw) return check_verbs(all, me, why_not, "XIO_BACKEND=hw");
  if (o.backend == k_auto && verbs) return carrier::verbs;
  return mapped ? carrier::shm : carrier::tcp;
}

namespace {

// Nobody has asked for the software NIC, and it was taken for want of a device. The first PE without one gives the
// reason; PE 0 says it once for the job where it costs much.
void say_what_was_taken(const std::vector<carrier_offer>& all, int me, carrier way) {
  std::size_t pe = 0;
  while (pe < all.size() && all[pe].verbs != 0) ++pe;
  if (pe == all.size()) return;
  const std::string why = text_of(all[pe].why_no_verbs);
  if (way == carrier::tcp && me == 0)
    log::warn(
        "PEs that do not map each other's memory reach each other by the software NIC over TCP, far slower than an "
        "RDMA device: PE {}: {} (XIO_BACKEND=hw makes this an error, XIO_BACKEND=model asks for it)",
        pe, why);
  else
    log::info("rdma: software NIC over {}, no hardware: PE {}: {}", name_of(way), pe, why);
}

bool connects_late(const std::vector<carrier_offer>& all, const std::string& why_not) {
  for (std::size_t pe = 0; pe < all.size(); ++pe)
    if (all[pe].connects != all[0].connects)
      fail(XIO_ERR_CONFIG, "XIO_CONNECT differs between PE 0 and PE {}; set it alike on every PE", pe);
  const auto asked = static_cast<option::connect>(all[0].connects);
  const auto first = std::ranges::find_if(all, [](const carrier_offer& o) { return o.eager != 0; });
  if (asked == option::connect::lazy && first != all.end())
    fail(XIO_ERR_UNSUPPORTED, "XIO_CONNECT=lazy: PE {} cannot make queue pairs while kernels run{}; leave it at auto",
         first - all.begin(), why_not.empty() ? "" : ": " + why_not);
  if (asked == option::connect::automatic) return all.size() >= k_lazy_from && first == all.end();
  return asked == option::connect::lazy;
}

}  // namespace

reason make_reason(const std::string& sentence) {
  reason out{};
  std::copy_n(sentence.begin(), std::min(sentence.size(), out.size() - 1), out.begin());
  return out;
}

std::string text_of(const reason& why) { return printable({why.data(), strnlen(why.data(), why.size())}); }

carrier agree_on_carrier(bootstrap::channel& c, const rdma_options& o, bool mapped, const std::string& why_no_verbs,
                         const std::string& why_no_slingshot, const std::string& why_not_lazy, bool* lazy) {
  carrier_offer mine{};
  mine.wanted = wanted_of(o);
  mine.backend = static_cast<std::uint32_t>(o.backend);
  mine.mapped = mapped ? 1 : 0;
  mine.verbs = why_no_verbs.empty() ? 1 : 0;
  mine.slingshot = why_no_slingshot.empty() ? 1 : 0;
  mine.why_no_verbs = make_reason(why_no_verbs);
  mine.connects = static_cast<std::uint32_t>(o.connect);
  mine.eager = why_not_lazy.empty() ? 0 : 1;
  const auto all = bootstrap::allgather_value(c, mine);
  if (lazy != nullptr) *lazy = connects_late(all, why_not_lazy);
  const carrier way = choose_carrier(all, c.rank(), why_no_verbs);
  if ((way == carrier::shm || way == carrier::tcp) && mine.backend == k_auto && mine.wanted == k_auto)
    say_what_was_taken(all, c.rank(), way);
  return way;
}

namespace {

// The families that name a vendor's queues as they are; the others are formats of the software NIC alone.
bool names_queues(option::nic_family f) {
  return f == option::nic_family::mlx5 || f == option::nic_family::bnxt || f == option::nic_family::ionic;
}

}  // namespace

bool wants_direct(const rdma_options& o) {
  // A user that names an executor wants the software NIC in front of it.
  return o.nic_executor == option::nic_executor::automatic && o.backend != option::backend::model &&
         (o.nic_family == option::nic_family::automatic || names_queues(o.nic_family));
}

direct_offer make_direct_offer(const rdma_options& o, direct_state state, xio_status_t status, const std::string& why,
                               const std::string& format) {
  direct_offer out{};
  out.state = static_cast<std::uint32_t>(state);
  out.forced = wants_direct(o) ? static_cast<std::uint32_t>(o.nic_family) : 0;
  static_assert(static_cast<std::uint32_t>(option::nic_family::automatic) == 0);
  out.status = static_cast<std::int32_t>(status);
  std::copy_n(format.begin(), std::min(format.size(), out.format.size() - 1), out.format.begin());
  out.why = make_reason(why);
  return out;
}

namespace {

bool is(const direct_offer& o, direct_state s) { return o.state == static_cast<std::uint32_t>(s); }

template <class Test>
int first_that(const std::vector<direct_offer>& all, Test&& test) {
  const auto found = std::ranges::find_if(all, test);
  return found == all.end() ? -1 : static_cast<int>(found - all.begin());
}

std::string why_not(const direct_offer& o) {
  return is(o, direct_state::unwanted) ? "its XIO_NIC_FAMILY, XIO_NIC_EXECUTOR or XIO_BACKEND asks for another way"
                                       : text_of(o.why);
}

}  // namespace

namespace {

std::string format_of(const direct_offer& o) {
  return printable({o.format.data(), strnlen(o.format.data(), o.format.size())});
}

std::string forced_word(const direct_offer& o) {
  const auto f = static_cast<option::nic_family>(o.forced);
  return names_queues(f) ? std::string(option::word_of(f)) : "one";
}

// All are ready. Queues of two vendors would have two lengths of messages, two sets of atomics and two formats of keys.
direct_verdict compare_formats(const std::vector<direct_offer>& all) {
  const int other = first_that(all, [&](const direct_offer& o) { return o.format != all[0].format; });
  if (other < 0) return {true, -1, false, ""};
  const int forced = first_that(all, [](const direct_offer& o) { return o.forced != 0; });
  const std::string why = fmt::format("PE 0 has queues of {} and PE {} of {}, and kernels of one world drive one kind",
                                      format_of(all[0]), other, format_of(all[static_cast<std::size_t>(other)]));
  if (forced >= 0)
    fail(XIO_ERR_UNSUPPORTED,
         "XIO_NIC_FAMILY={} on PE {}: {}; give every PE NICs of one vendor (XIO_HCA_LIST), or set XIO_NIC_FAMILY=proxy",
         forced_word(all[static_cast<std::size_t>(forced)]), forced, why);
  return {false, other, false, why + "; choose NICs of one vendor with XIO_HCA_LIST"};
}

}  // namespace

direct_verdict choose_direct(const std::vector<direct_offer>& all) {
  const auto ready = [](const direct_offer& o) { return is(o, direct_state::ready); };
  const int hindered = first_that(all, [&](const direct_offer& o) { return !ready(o); });
  if (hindered < 0) return compare_formats(all);
  const direct_offer& first = all[static_cast<std::size_t>(hindered)];
  const int forced = first_that(all, [](const direct_offer& o) { return o.forced != 0; });
  if (forced >= 0)
    fail(is(first, direct_state::unwanted) ? XIO_ERR_CONFIG : peer_status(first.status),
         "XIO_NIC_FAMILY={} on PE {} asks for queues that kernels drive by themselves, on every PE, and PE {} has "
         "none: {}; set XIO_NIC_FAMILY=auto, or XIO_NIC_EXECUTOR=verbs for the format alone, read by the software NIC",
         forced_word(all[static_cast<std::size_t>(forced)]), forced, hindered, why_not(first));
  const bool could =
      std::ranges::all_of(all, [&](const direct_offer& o) { return ready(o) || is(o, direct_state::refused); });
  if (could)
    fail(peer_status(first.status), "PE {}: {} (or set XIO_NIC_FAMILY=proxy for queues that a host thread works off)",
         hindered, why_not(first));
  if (first_that(all, [](const direct_offer& o) { return !is(o, direct_state::unwanted); }) < 0)
    return {false, -1, false, ""};
  // A PE where it failed explains more than a PE that did not want it.
  const int broken = first_that(all, [](const direct_offer& o) { return is(o, direct_state::failed); });
  const int pe = broken >= 0 ? broken : hindered;
  return {false, pe, broken >= 0, why_not(all[static_cast<std::size_t>(pe)])};
}

bool agree_on_direct(bootstrap::channel& c, const direct_offer& mine) {
  const direct_verdict v = choose_direct(bootstrap::allgather_value(c, mine));
  if (v.pe >= 0 && v.worth_a_warning && v.pe == c.rank())
    log::warn("{}; kernels of all PEs reach their devices through the proxy", v.why_not);
  else if (v.pe >= 0)
    log::info("rdma: kernels reach devices through the proxy: PE {}: {}", v.pe, v.why_not);
  return v.taken;
}

void agree_on_opening(bootstrap::channel& c, const std::exception_ptr& failure) {
  struct opening {
    std::int32_t status = XIO_OK;
    reason why{};
  } mine;
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (...) {
    mine.status = static_cast<std::int32_t>(status_of_current_exception());
    mine.why = make_reason(last_error());
  }
  const auto all = bootstrap::allgather_value(c, mine);
  if (failure) std::rethrow_exception(failure);
  for (std::size_t pe = 0; pe < all.size(); ++pe)
    if (all[pe].status != XIO_OK) fail(peer_status(all[pe].status), "PE {}: {}", pe, text_of(all[pe].why));
}

std::string family_name(const rdma_options& o, carrier c) {
  if (o.nic_family != option::nic_family::automatic) return std::string(option::word_of(o.nic_family));
  return c == carrier::verbs || c == carrier::libfabric ? "proxy" : "mlx5";
}

}  // namespace xio::rdma
