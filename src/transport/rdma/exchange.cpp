// SPDX-License-Identifier: MIT
#include "transport/rdma/exchange.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/error.hpp"

namespace xio::rdma {

namespace {

constexpr std::uint32_t k_magic = 0x4f495852;  // "RXIO"
constexpr std::uint16_t k_version = 2;

enum class message : std::uint16_t { identity = 1, queues = 2 };

struct header {
  std::uint32_t magic;
  std::uint16_t version;
  message kind;
  std::int32_t status;
  std::uint32_t count;  // of queue numbers that follow
};
static_assert(sizeof(header) == 16);

struct identity_message {
  header head;
  identity what;
};
static_assert(sizeof(identity_message) == 1080);

header make_header(message kind, xio_status_t status, std::uint32_t count) {
  return header{k_magic, k_version, kind, static_cast<std::int32_t>(status), count};
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
    fail(XIO_ERR_PEER, "PE {} could not set up RDMA ({}); its own error says why", pe,
         xio_status_name(static_cast<xio_status_t>(h.status)));
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

std::vector<queue_card> exchange_queues(bootstrap::channel& c, const std::vector<queue_card>& mine,
                                        std::uint32_t per_peer, xio_status_t status) {
  const auto n = static_cast<std::size_t>(c.size());
  const std::size_t count = n * per_peer;
  std::vector<std::byte> bytes(sizeof(header) + count * sizeof(queue_card));
  const header h = make_header(message::queues, status, static_cast<std::uint32_t>(count));
  std::memcpy(bytes.data(), &h, sizeof h);
  if (status == XIO_OK) std::memcpy(bytes.data() + sizeof h, mine.data(), count * sizeof(queue_card));
  const auto all = c.allgather(bytes);
  std::vector<queue_card> out;
  if (status != XIO_OK) return out;
  for (std::size_t pe = 0; pe < n; ++pe) {
    const std::byte* from = all.data() + pe * bytes.size();
    header theirs;
    std::memcpy(&theirs, from, sizeof theirs);
    check_header(theirs, message::queues, static_cast<std::uint32_t>(count), static_cast<int>(pe));
    for (std::uint32_t which = 0; which < per_peer; ++which) {
      queue_card q;
      const std::size_t place = static_cast<std::size_t>(c.rank()) * per_peer + which;
      std::memcpy(&q, from + sizeof theirs + place * sizeof q, sizeof q);
      const std::uint32_t here = mine[pe * per_peer + which].number;
      if ((q.number != 0) != (here != 0) || q.number > 0xffffff)
        fail(XIO_ERR_PEER,
             "PE {} {} a queue pair to this PE, which {}; create contexts with the same attributes on every PE", pe,
             q.number != 0 ? "has" : "lacks", here != 0 ? "has one to it" : "has none to it");
      out.push_back(q);
    }
  }
  return out;
}

}  // namespace xio::rdma
