// SPDX-License-Identifier: MIT
// The connection to one PE, which all queue pairs to that PE share: frames are gathered into records, which go out and
// come in many at a time. A link that has failed once stays failed.
#pragma once
#include <memory>

#include "proxy/frame_faults.hpp"
#include "proxy/tcp_handshake.hpp"

namespace xio::proxy::tcp {

// One record on its way out: a head, and frames behind it (tcp_frames.hpp).
struct link_record {
  alignas(8) unsigned char bytes[k_record_max];
  std::uint32_t used;
  bool closed;
};

// Shared by the links of a NIC: buffers that none uses now, and the epoll instance that names those with something to
// read (its data.ptr is the link). There are links to all PEs, and few of them have something under way.
struct link_room {
  unique_fd ready;
  std::vector<std::vector<unsigned char>> in;
  std::vector<std::unique_ptr<link_record>> out;
};

class link {
 public:
  // Not connected yet; lost if that does not change until `until`. `room` outlives it while it is in use.
  link(int pe, clock::time_point until, frame_faults* faults, link_room& room);
  ~link() { close(); }
  void call(std::unique_ptr<caller> c) { caller_ = std::move(c); }
  // The connection stands.
  template <class Handshake>
  void open(Handshake& m) {
    fd_ = m.take(out_seal_, in_seal_);
    go_up();
  }
  // One of two ends within this process.
  void open(unique_fd fd, const session& keys, bool is_caller);

  int pe() const { return pe_; }
  bool up() const { return state_ == state::up; }
  bool waiting() const { return state_ == state::waiting; }
  bool lost() const { return state_ == state::lost; }
  void lose(const std::string& why);
  const std::string& why() const { return why_; }

  // Whether send() has something to do.
  bool has_output() const { return !out_.empty() || !held_.empty(); }
  // Bytes that wait to be sent.
  std::uint64_t backlog() const { return backlog_; }
  // When it was last seen that the peer's machine had taken bytes, or had sent some. Seen a few milliseconds late.
  clock::time_point moved_at(clock::time_point now);

  // Queue pairs that wait for room take turns. True: `who` may put one frame; else it stands in line from here on,
  // until it has its turn or leaves.
  bool has_turn(const void* who);
  bool stands_in_line(const void* who) const { return std::ranges::find(line_, who) != line_.end(); }
  void leave_line(const void* who) { std::erase(line_, who); }

  // Room for the payload of the frame, payload_of(h) bytes, to be filled before put(). Null if the link is not up.
  unsigned char* begin(const frame_head& h);
  void put();
  void put(const frame_head& h) {
    if (begin(h) != nullptr) put();
  }

  // Every frame that came. False: the frame makes no sense, and the link is lost.
  // It may put(), but not send(): a link that is lost there gives away the buffer in which the frame lies.
  using sink = std::function<bool(const frame_head& h, const unsigned char* payload)>;
  // One turn each; they return the bytes that were moved.
  std::uint64_t receive(const sink& take);
  std::uint64_t send();

 private:
  enum class state { waiting, up, lost };
  struct held {
    clock::time_point not_before;
    bool after_next;
    std::vector<unsigned char> bytes;
  };
  void connect();
  // Bytes that the peer's machine has.
  std::uint64_t taken() const;
  void limit_unsent();
  void go_up();
  void close();
  link_record& open_record(std::uint32_t bytes);
  void close_record();
  void judge(link_record& r, std::uint32_t bytes);
  void append(const std::vector<unsigned char>& bytes);
  void release_held(bool one_went);
  void put_by(std::unique_ptr<link_record> r);
  void take_buffer();
  void put_buffer_by();
  std::uint64_t read(const sink& take);
  bool handle_records(const sink& take);
  bool handle_frames(const unsigned char* body, std::uint32_t bytes, const sink& take);

  const int pe_;
  const clock::time_point until_;
  frame_faults* const faults_;
  link_room& room_;
  state state_ = state::waiting;
  std::string why_;
  std::unique_ptr<caller> caller_;
  unique_fd fd_;
  seal out_seal_, in_seal_;
  std::deque<std::unique_ptr<link_record>> out_;
  std::uint64_t backlog_ = 0, granted_at_ = 0;
  std::uint32_t sent_ = 0;   // of the first record
  std::uint32_t begun_ = 0;  // bytes of the frame between begin and put
  std::deque<held> held_;
  std::deque<const void*> line_;
  std::uint64_t went_ = 0, came_ = 0;  // bytes that the kernel took, and gave
  std::uint64_t moved_ = 0;            // of both, at the last poll
  clock::time_point polled_at_{}, moved_at_{};
  // The kernel's limit for bytes that it has not sent, and when it was chosen.
  std::uint64_t unsent_ = 0, limited_taken_ = 0;
  clock::time_point limited_at_{};
  std::vector<unsigned char> in_;  // empty if nothing has come of a record
  std::size_t in_begin_ = 0, in_end_ = 0;
};

}  // namespace xio::proxy::tcp
