// SPDX-License-Identifier: MIT
// A proven connection: frames sealed with a key of its own for each direction.
//
//   frame   length (4 bytes, little-endian, of what follows) | ChaCha20-Poly1305(kind (1 byte) | payload) | tag (16)
//
// The nonce of a frame is its number in its direction and the length is under the tag (base/crypto.hpp), so a frame
// that was altered, cut, repeated, left out or moved does not open.
#pragma once
#include "bootstrap/handshake.hpp"
#include "bootstrap/socket.hpp"

namespace xio::bootstrap {

inline constexpr std::size_t k_frame_payload_max = 64 * 1024;
inline constexpr std::size_t k_frame_tag_bytes = 16;
inline constexpr std::size_t k_frame_body_max = 1 + k_frame_payload_max + k_frame_tag_bytes;

enum class frame_kind : std::uint8_t {
  welcome = 1,  // root -> peer: the world is complete
  gather = 2,   // a piece of an allgather, either way
  abort = 3,    // status and sentence: the sender has given the world up
  cells = 4,    // a piece of an all-to-all, either way
  same = 5,     // root -> peer: a piece of what every rank gave to an allgather
  view = 6,     // between members: a message of their agreement (view.hpp)
  pair = 7,     // between members: of queue pairs (src/transport/rdma/exchange.hpp)
};

struct frame {
  frame_kind kind{};
  std::vector<std::byte> payload;
};

class sealed_link {
 public:
  sealed_link() = default;
  sealed_link(byte_stream stream, const session_keys& keys, link_end us, std::string who);

  int fd() const { return stream_.fd(); }
  bool is_open() const { return stream_.fd() >= 0; }
  const std::string& who() const { return who_; }  // "rank 3 (10.0.0.1:4711)"

  // Seals and queues; payload at most k_frame_payload_max.
  void queue(frame_kind kind, std::span<const std::byte> payload);
  bool sending() const { return stream_.sending(); }
  // Sends what the kernel takes now. Throws XIO_ERR_PEER if the peer is gone.
  void send_some();

  // True when a whole frame stands in `out`. Throws XIO_ERR_PEER if the peer is gone, XIO_ERR_AUTH if the frame is not
  // authentic or longer than allowed.
  bool receive(frame& out);

  // Queues an abort frame, as far as it fits one frame.
  void queue_abort(xio_status_t status, std::string_view sentence);

  // Of all frames so far, either way.
  std::uint64_t bytes_moved() const { return moved_; }

  byte_stream& stream() { return stream_; }
  void close() { stream_.close(); }

 private:
  byte_stream stream_;
  secret seal_key_, unseal_key_;
  std::uint64_t sealed_ = 0, unsealed_ = 0;
  std::uint64_t moved_ = 0;
  std::string who_;
};

// Throws what an abort frame says.
[[noreturn]] void throw_abort(const frame& f, const std::string& who);

// Tells every link why, then closes it in a way that lets the sentence arrive; takes half a second at most.
void abort_links(std::span<sealed_link* const> links, xio_status_t status, std::string_view sentence,
                 std::uint64_t timeout_ms);

}  // namespace xio::bootstrap
