// SPDX-License-Identifier: MIT
// The messages of exchanges over a star of sealed links. Each is a header and data, cut into frames of its kind:
//
//   number of the exchange (8 bytes) | count (8) | data
//
//   kind     count                   data to the root           data from the root
//   gather   bytes of each rank      the sender's               those of all ranks
//   same     the same                                           one rank's: all have given the same
//   cells    ranks of the world      a size (4) for each rank, then that rank's cell
//                                                               a size (4) from each rank, then that rank's cell
//
// Integers are little-endian. Pure but for the links.
#pragma once
#include "bootstrap/cells.hpp"
#include "bootstrap/link.hpp"

namespace xio::bootstrap {

// Stands in front of the data.
struct exchange_head {
  frame_kind kind;
  std::uint64_t number, count;
  static constexpr std::size_t k_bytes = 16;
};

// The whole message.
std::vector<std::byte> make_message(const exchange_head& head, std::span<const std::byte> data);
std::vector<std::byte> make_message(const exchange_head& head, const cells& all);

// One message on its way out over a link, one frame queued at a time.
class outgoing {
 public:
  outgoing(sealed_link& to, frame_kind kind, std::span<const std::byte> message)
      : to_(&to), kind_(kind), message_(message) {}
  sealed_link& link() const { return *to_; }
  bool done() const { return queued_ == message_.size() && !to_->sending(); }
  void step();

 private:
  sealed_link* to_;
  frame_kind kind_;
  std::span<const std::byte> message_;
  std::size_t queued_ = 0;
};

// One message on its way in. Everything in it is checked before it is used: a length is never more than what the
// receiver expects, or k_data_max.
class incoming {
 public:
  enum class end { root, peer };  // the receiver
  // ranks: of the world.
  incoming(sealed_link& from, const exchange_head& wanted, end receiver, std::size_t ranks);

  sealed_link& link() const { return *from_; }
  // The bytes that were waited for last have come.
  bool done() const { return gone_ + message_.size() >= wanted_; }
  void step();
  // Throws what an abort says that has come behind the message.
  void hear_abort();

  // Of a gather: what follows the header, and whether it is one rank's for all.
  std::span<const std::byte> data() const { return std::span(message_).subspan(exchange_head::k_bytes); }
  bool is_same() const { return is_same_; }

  // Of cells. The sizes come first; then a peer gets all cells, and the root as many as it waits for.
  std::size_t size_of(std::size_t rank) const { return at_[rank + 1] - at_[rank]; }
  void wait_for_cells(std::size_t end) { wanted_ = at_[end]; }
  std::span<const std::byte> cell(std::size_t rank) const {
    return std::span(message_).subspan(at_[rank] - gone_, size_of(rank));
  }
  // Those before that rank's are needed no more.
  void forget_cells(std::size_t end);

 private:
  void take(const frame& f);
  void check_kind(const frame& f);
  void check_head() const;
  void learn_sizes();
  [[noreturn]] void fail_malformed() const;

  sealed_link* from_;
  exchange_head head_;
  end receiver_;
  std::size_t wanted_, most_;  // bytes of the message from its beginning
  std::size_t gone_ = 0;       // that were forgotten
  bool is_same_ = false;
  std::vector<std::size_t> at_;  // where each cell begins, and where the last one ends; empty until sizes are there
  std::vector<std::byte> message_;
};

}  // namespace xio::bootstrap
