// SPDX-License-Identifier: MIT
#include "transport/rdma/exchange.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <span>

#include "base/error.hpp"
#include "base/peer_word.hpp"
#include "transport/rdma/carrier.hpp"

namespace xio::rdma {

namespace {

constexpr std::uint32_t k_magic = 0x4f495852;  // "RXIO"
constexpr std::uint16_t k_version = 4;

enum class message : std::uint16_t { identity = 1, queues = 2 };

struct header {
  std::uint32_t magic;
  std::uint16_t version;
  message kind;
  std::int32_t status;
  std::uint32_t count;  // of queue numbers that follow
  reason why;           // of a status that is not XIO_OK
  std::uint32_t reserved;
};
static_assert(sizeof(header) == 264);

struct identity_message {
  header head;
  identity what;
};
static_assert(sizeof(identity_message) == 1328);

header make_header(message kind, xio_status_t status, std::uint32_t count) {
  // A caller whose set-up failed has just turned its exception into this thread's last error.
  const reason why = status == XIO_OK ? reason{} : make_reason(last_error());
  return header{k_magic, k_version, kind, static_cast<std::int32_t>(status), count, why, 0};
}

void check_header(const header& h, message kind, std::uint32_t count, int pe) {
  if (h.magic != k_magic) fail(XIO_ERR_PEER, "PE {} sent no RDMA set-up message; run the same XIO on every PE", pe);
  if (h.version != k_version)
    fail(XIO_ERR_PEER,
         "PE {} speaks version {} of the RDMA set-up and this PE version {}; run the same XIO on every PE", pe,
         h.version, k_version);
  if (h.kind != kind || h.count != count)
    fail(XIO_ERR_PEER,
         "PE {} is at another step of the RDMA set-up (message {}, {} queues, expected {} and {}); create "
         "contexts in the same order on every PE",
         pe, static_cast<unsigned>(h.kind), h.count, static_cast<unsigned>(kind), count);
  if (h.status != XIO_OK)
    fail(XIO_ERR_PEER, "PE {} could not set up RDMA ({}): {}", pe, xio_status_name(peer_status(h.status)),
         h.why[0] != 0 ? text_of(h.why) : "its own error says why");
}

// A PE that failed itself throws its own error and not the others' view of it.
void check_identity(const identity& theirs, const identity& mine, int pe) {
  if (theirs.heap_bytes != mine.heap_bytes)
    fail(XIO_ERR_PEER, "PE {} has a heap of {} bytes and this PE one of {}; set XIO_HEAP_SIZE alike everywhere", pe,
         theirs.heap_bytes, mine.heap_bytes);
  if (theirs.nics != mine.nics)
    fail(XIO_ERR_PEER, "PE {} uses {} NICs and this PE {}; name as many on every PE (XIO_HCA_LIST, XIO_MODEL_NICS)", pe,
         theirs.nics, mine.nics);
  if (theirs.heap_base == 0 || theirs.heap_base + theirs.heap_bytes < theirs.heap_base)
    fail(XIO_ERR_PEER, "PE {} described its heap by address {:#x}, which cannot be; run the same XIO on every PE", pe,
         theirs.heap_base);
  if (theirs.max_message != mine.max_message)
    fail(XIO_ERR_PEER, "PE {}'s NIC takes messages of {} bytes and this PE's {}; use the same kind of NIC on every PE",
         pe, theirs.max_message, mine.max_message);
}

}  // namespace

std::vector<identity> exchange_identities(bootstrap::channel& c, const identity& mine, xio_status_t status) {
  const auto all = bootstrap::allgather_value(c, identity_message{make_header(message::identity, status, 0), mine});
  std::vector<identity> out;
  if (status != XIO_OK) return out;
  for (int pe = 0; pe < c.size(); ++pe) {
    const identity_message& m = all[static_cast<std::size_t>(pe)];
    check_header(m.head, message::identity, 0, pe);
    check_identity(m.what, mine, pe);
    out.push_back(m.what);
  }
  return out;
}

namespace {

// One allgather about the PEs [first, end): each PE gives a header, and its queue addresses for them.
struct round {
  std::size_t first, end;
  std::size_t per_peer;
  std::size_t addresses() const { return (end - first) * per_peer; }
  std::size_t bytes() const { return sizeof(header) + addresses() * sizeof(queue_address); }
  bool is_about(std::size_t pe) const { return pe >= first && pe < end; }
};

// PEs of a round: as many as keep what all of the n give together below `bytes`, one at least.
std::size_t pes_of_a_round(std::size_t n, std::size_t per_peer, std::size_t bytes) {
  const std::size_t each = bytes / n;
  const std::size_t fit = each < sizeof(header) ? 0 : (each - sizeof(header)) / (per_peer * sizeof(queue_address));
  return std::clamp<std::size_t>(fit, 1, n);
}

std::vector<std::byte> gather(bootstrap::channel& c, const round& r, const header& head,
                              const std::vector<queue_address>& mine) {
  std::vector<std::byte> bytes(r.bytes());
  std::memcpy(bytes.data(), &head, sizeof head);
  if (head.status == XIO_OK)
    std::memcpy(bytes.data() + sizeof head, mine.data() + r.first * r.per_peer, r.addresses() * sizeof(queue_address));
  return c.allgather(bytes);
}

// Checks the parts of all PEs, and adds their queue addresses for PE `me` to `out`, if this round is about it.
void take(const std::vector<std::byte>& all, const round& r, std::uint32_t count, std::size_t me,
          std::vector<queue_address>& out) {
  const std::size_t bytes = r.bytes();
  for (std::size_t pe = 0; pe < all.size() / bytes; ++pe) {
    const std::byte* from = all.data() + pe * bytes;
    header theirs;
    std::memcpy(&theirs, from, sizeof theirs);
    check_header(theirs, message::queues, count, static_cast<int>(pe));
    if (!r.is_about(me)) continue;
    const std::size_t at = out.size();
    out.resize(at + r.per_peer);
    std::memcpy(&out[at], from + sizeof theirs + (me - r.first) * r.per_peer * sizeof(queue_address),
                r.per_peer * sizeof(queue_address));
  }
}

void check_addresses(const std::vector<queue_address>& theirs, const std::vector<queue_address>& mine,
                     std::uint32_t per_peer) {
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    const std::uint32_t there = theirs[i].number, here = mine[i].number;
    if ((there != 0) != (here != 0) || there > 0xffffff)
      fail(XIO_ERR_PEER,
           "PE {} {} a queue pair to this PE, which {}; create contexts with the same attributes on every PE",
           i / per_peer, there != 0 ? "has" : "lacks", here != 0 ? "has one to it" : "has none to it");
  }
}

}  // namespace

std::vector<queue_address> exchange_queues(bootstrap::channel& c, const std::vector<queue_address>& mine,
                                           std::uint32_t per_peer, xio_status_t status, std::size_t round_bytes) {
  const auto n = static_cast<std::size_t>(c.size());
  const auto count = static_cast<std::uint32_t>(n * per_peer);
  const header head = make_header(message::queues, status, count);
  const std::size_t step = pes_of_a_round(n, per_peer, round_bytes);
  std::vector<queue_address> theirs;
  std::exception_ptr failure;
  for (std::size_t first = 0; first < n; first += step) {
    const round r{first, std::min(first + step, n), per_peer};
    const auto all = gather(c, r, head, mine);
    if (status != XIO_OK || failure) continue;
    try {
      take(all, r, count, static_cast<std::size_t>(c.rank()), theirs);
    } catch (const error&) {
      failure = std::current_exception();  // the others go on to the next round
    }
  }
  if (failure) std::rethrow_exception(failure);
  check_addresses(theirs, mine, per_peer);
  return theirs;
}

}  // namespace xio::rdma
