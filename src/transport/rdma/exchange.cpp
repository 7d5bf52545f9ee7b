// SPDX-License-Identifier: MIT
#include "transport/rdma/exchange.hpp"

#include <algorithm>
#include <bitset>
#include <cstring>
#include <span>

#include "base/error.hpp"
#include "base/peer_word.hpp"
#include "transport/rdma/carrier.hpp"

namespace xio::rdma {

namespace {

constexpr std::uint32_t k_magic = 0x4f495852;  // "RXIO"
constexpr std::uint16_t k_version = 6;

enum class message : std::uint16_t { identity = 1, queues = 2, pair = 3, pair_reply = 4 };

// Of a status that is not XIO_OK the reason follows, as far as the message goes; else what the kind of message says.
struct header {
  std::uint32_t magic;
  std::uint16_t version;
  message kind;
  std::int32_t status;
  std::uint32_t count;  // of queue pairs that follow
};
static_assert(sizeof(header) == 16);

// The part of an identity that has a fixed size. For each NIC its key (4), the length of its address (1) and the
// address follow; last, where queue pairs are connected when they are needed, where this PE listens.
struct identity_head {
  std::uint64_t heap_base, heap_bytes;
  std::uint32_t nics, max_message;
};
static_assert(sizeof(identity_head) == 24);

constexpr std::size_t k_identity_most = sizeof(header) + sizeof(identity_head) +
                                        dev::k_max_nics * (5 + proxy::k_device_address_most) + sizeof(xio_unique_id_t);

using bytes = std::vector<std::byte>;

template <class T>
void append(bytes& to, const T& value) {
  const std::size_t at = to.size();
  to.resize(at + sizeof value);
  std::memcpy(to.data() + at, &value, sizeof value);
}

// The start of a message, and of one that failed all of it.
bytes make_message(message kind, xio_status_t status, std::uint32_t count) {
  bytes out;
  append(out, header{k_magic, k_version, kind, static_cast<std::int32_t>(status), count});
  if (status == XIO_OK) return out;
  // A caller whose set-up failed has just turned its exception into this thread's last error.
  const reason why = make_reason(last_error());
  const auto text = std::as_bytes(std::span(why)).first(strnlen(why.data(), why.size()));
  out.insert(out.end(), text.begin(), text.end());
  return out;
}

// Takes a peer's message apart. Beyond its end it reads zeroes, and at_end() is false.
class reader {
 public:
  explicit reader(std::span<const std::byte> message) : left_(message) {}
  template <class T>
  T take() {
    T out{};
    const auto from = take_bytes(sizeof out);
    if (!from.empty()) std::memcpy(&out, from.data(), from.size());
    return out;
  }
  std::span<const std::byte> take_bytes(std::size_t count) {
    short_ = short_ || count > left_.size();
    const auto out = left_.first(std::min(count, left_.size()));
    left_ = left_.subspan(out.size());
    return out;
  }
  bool at_end() const { return !short_ && left_.empty(); }

 private:
  std::span<const std::byte> left_;
  bool short_ = false;
};

void check_header(reader& from, message kind, std::uint32_t count, int pe) {
  const auto h = from.take<header>();
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
  if (h.status == XIO_OK) return;
  reason why{};
  const auto text = from.take_bytes(sizeof why - 1);
  std::ranges::copy(text, std::as_writable_bytes(std::span(why)).begin());
  fail(XIO_ERR_PEER, "PE {} could not set up RDMA ({}): {}", pe, xio_status_name(peer_status(h.status)),
       why[0] != 0 ? text_of(why) : "its own error says why");
}

[[noreturn]] void fail_length(int pe) {
  fail(XIO_ERR_PEER, "PE {} sent an RDMA set-up message of another length than it says; run the same XIO on every PE",
       pe);
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

// Most bytes of it are zeroes: which ones are not (a bit for each), then those.
void append_sparse(bytes& to, const xio_unique_id_t& id) {
  std::bitset<sizeof id> there;
  bytes some;
  for (const std::byte b : std::as_bytes(std::span(&id, 1))) {
    there <<= 1;
    there[0] = b != std::byte{};
    if (there[0]) some.push_back(b);
  }
  append(to, there);
  to.insert(to.end(), some.begin(), some.end());
}
xio_unique_id_t take_sparse(reader& from) {
  xio_unique_id_t id{};
  auto there = from.take<std::bitset<sizeof id>>();
  for (std::byte& b : std::as_writable_bytes(std::span(&id, 1))) {
    if (there[sizeof id - 1]) b = from.take<std::byte>();
    there <<= 1;
  }
  return id;
}

bytes encode(const identity& mine) {
  bytes out = make_message(message::identity, XIO_OK, 0);
  append(out, identity_head{mine.heap_base, mine.heap_bytes, mine.nics, mine.max_message});
  for (std::uint32_t i = 0; i < mine.nics; ++i) {
    const device_address& at = mine.nic_addresses[i];
    append(out, mine.heap_rkey[i]);
    append(out, static_cast<std::uint8_t>(at.size()));
    out.insert(out.end(), at.begin(), at.end());
  }
  if (mine.listens) append_sparse(out, *mine.listens);
  return out;
}

identity decode_identity(std::span<const std::byte> message, const identity& mine, int pe) {
  reader from(message);
  check_header(from, message::identity, 0, pe);
  const auto head = from.take<identity_head>();
  identity out{head.heap_base, head.heap_bytes, head.nics, head.max_message, {}, {}, {}};
  check_identity(out, mine, pe);
  for (std::uint32_t i = 0; i < out.nics; ++i) {
    out.heap_rkey[i] = from.take<std::uint32_t>();
    const auto at = from.take_bytes(from.take<std::uint8_t>());
    out.nic_addresses[i].assign(at.begin(), at.end());
  }
  if (mine.listens) out.listens = take_sparse(from);
  if (!from.at_end()) fail_length(pe);
  return out;
}

}  // namespace

std::vector<identity> exchange_identities(bootstrap::channel& c, const identity& mine, xio_status_t status) {
  const bytes said = status == XIO_OK ? encode(mine) : make_message(message::identity, status, 0);
  const auto all = bootstrap::allgather_unequal(c, said, k_identity_most);
  std::vector<identity> out;
  if (status != XIO_OK) return out;
  for (int pe = 0; pe < c.size(); ++pe) out.push_back(decode_identity(all[static_cast<std::size_t>(pe)], mine, pe));
  return out;
}

namespace {

constexpr std::uint32_t k_number_most = 0xffffff;  // 24 bits: InfiniBand specification, 9.2 (base transport header)
constexpr unsigned k_length_shift = 24;

// A word with number and length, then the address. The word of a queue pair that is not there is 0.
void append_queue(bytes& to, const queue_address& q) {
  if (q.number > k_number_most || q.what.size() > proxy::k_device_address_most)
    fail(XIO_ERR_INTERNAL, "queue pair {:#x} has an address of {} bytes; this is a bug of XIO, please report it",
         q.number, q.what.size());
  append(to, q.number | static_cast<std::uint32_t>(q.what.size()) << k_length_shift);
  to.insert(to.end(), q.what.begin(), q.what.end());
}

void take_queues(reader& from, std::uint32_t count, int pe, std::vector<queue_address>& out) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto word = from.take<std::uint32_t>();
    const auto what = from.take_bytes(word >> k_length_shift);
    out.push_back({word & k_number_most, {what.begin(), what.end()}});
  }
  if (!from.at_end()) fail_length(pe);
}

void decode_queues(std::span<const std::byte> cell, std::uint32_t count, int pe, std::vector<queue_address>& out) {
  reader from(cell);
  check_header(from, message::queues, count, pe);
  take_queues(from, count, pe, out);
}

bootstrap::cells make_cells(std::size_t n, const std::vector<queue_address>& mine, std::uint32_t per_peer,
                            xio_status_t status) {
  const bytes head = make_message(message::queues, status, per_peer);
  if (status != XIO_OK) return bootstrap::cells::same(head, n);
  bootstrap::cells out;
  for (std::size_t pe = 0; pe < n; ++pe) {
    bytes cell = head;
    for (std::uint32_t i = 0; i < per_peer; ++i) append_queue(cell, mine[pe * per_peer + i]);
    out.add(cell);
  }
  return out;
}

void check_addresses(const std::vector<queue_address>& theirs, const std::vector<queue_address>& mine,
                     std::uint32_t per_peer) {
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    const std::uint32_t there = theirs[i].number, here = mine[i].number;
    if ((there != 0) != (here != 0))
      fail(XIO_ERR_PEER,
           "PE {} {} a queue pair to this PE, which {}; create contexts with the same attributes on every PE",
           i / per_peer, there != 0 ? "has" : "lacks", here != 0 ? "has one to it" : "has none to it");
  }
}

}  // namespace

std::vector<queue_address> exchange_queues(bootstrap::channel& c, const std::vector<queue_address>& mine,
                                           std::uint32_t per_peer, xio_status_t status) {
  // Without queue pairs all say the same, which an allgather brings to all PEs at once.
  const auto all = per_peer == 0
                       ? bootstrap::allgather_unequal(c, make_message(message::queues, status, 0), k_identity_most)
                       : c.all_to_all(make_cells(static_cast<std::size_t>(c.size()), mine, per_peer, status));
  std::vector<queue_address> theirs;
  if (status != XIO_OK) return theirs;
  for (int pe = 0; pe < c.size(); ++pe) decode_queues(all[static_cast<std::size_t>(pe)], per_peer, pe, theirs);
  check_addresses(theirs, mine, per_peer);
  return theirs;
}

namespace {

constexpr std::uint32_t k_pairs_most = 64;  // queue pairs of one ctx to one PE

}  // namespace

std::vector<std::byte> encode_pair(const pair_message& m) {
  bytes out;
  append(out, header{k_magic, k_version, m.is_reply ? message::pair_reply : message::pair,
                     static_cast<std::int32_t>(m.status), static_cast<std::uint32_t>(m.queues.size())});
  append(out, m.set);
  for (const queue_address& q : m.queues) append_queue(out, q);
  const auto text = std::as_bytes(std::span(m.why)).first(std::min(m.why.size(), sizeof(reason) - 1));
  if (m.status != XIO_OK) out.insert(out.end(), text.begin(), text.end());
  return out;
}

pair_message decode_pair(std::span<const std::byte> message_bytes, int pe) {
  reader from(message_bytes);
  const auto h = from.take<header>();
  const bool is_reply = h.kind == message::pair_reply;
  if (h.magic != k_magic || h.version != k_version || (!is_reply && h.kind != message::pair) || h.count > k_pairs_most)
    fail(XIO_ERR_PEER, "PE {} sent no message about queue pairs; run the same XIO on every PE", pe);
  pair_message m{is_reply, from.take<std::uint64_t>(), XIO_OK, "", {}};
  if (h.status == XIO_OK) {
    take_queues(from, h.count, pe, m.queues);
  } else {
    m.status = peer_status(h.status);
    reason why{};
    const auto text = from.take_bytes(std::min(message_bytes.size() - sizeof h - sizeof m.set, sizeof why - 1));
    std::ranges::copy(text, std::as_writable_bytes(std::span(why)).begin());
    m.why = text_of(why);
  }
  return m;
}

}  // namespace xio::rdma
