// SPDX-License-Identifier: MIT
// The receiving half of a queue pair over TCP: accepts frames in order only, carries each out once, replies.
#pragma once
#include "base/payload.hpp"
#include "proxy/keys.hpp"
#include "proxy/tcp_link.hpp"

namespace xio::proxy::tcp {

class responder {
 public:
  responder(const payload_agent& payload, const key_table& keys, const tcp_settings& settings, std::uint32_t number,
            std::uint32_t remote_number)
      : payload_(payload), keys_(keys), settings_(settings), number_(number), remote_number_(remote_number) {}

  // False: the frame makes no sense. Replies go out on the link that it came on.
  bool handle(const frame_head& h, const unsigned char* payload, link& way);
  // One acknowledgement for all that was taken since the last.
  void acknowledge(link& way);
  bool owes() const { return owes_; }

 private:
  enum class end { done, not_ready, refused, later };
  frame_head reply(frame_kind kind, std::uint64_t psn) const;
  void send_refusal(link& way);
  end carry_out(const frame_head& h, const unsigned char* payload, link& way);
  end refuse(op_error f);
  end write(const frame_head& h, const unsigned char* payload);
  end read(const frame_head& h, link& way);
  end change(const frame_head& h, const unsigned char* payload, link& way);
  void repeat(const frame_head& h, link& way);

  // As many as a requester can have under way, and then some.
  static constexpr std::size_t k_kept = 512;
  struct kept {
    std::uint64_t psn = ~std::uint64_t{0}, old = 0;
  };

  const payload_agent& payload_;
  const key_table& keys_;
  const tcp_settings& settings_;
  const std::uint32_t number_, remote_number_;
  std::uint64_t expected_ = 0;
  bool asked_again_ = false, owes_ = false;
  op_error refused_;
  std::array<kept, k_kept> kept_;
};

}  // namespace xio::proxy::tcp
