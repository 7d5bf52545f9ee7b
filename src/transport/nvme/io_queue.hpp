// SPDX-License-Identifier: MIT
// An I/O queue pair and the memory of the ring over it.
#pragma once
#include "memory/mode.hpp"
#include "transport/nvme/drive.hpp"
#include "xio/device/impl/view.hpp"

namespace xio::nvme {

class io_queue {
 public:
  // qid from 1, or what the maker makes of it. depth is a power of two; ticket_start is rounded down to a multiple of
  // it. sgls: commands name their data by descriptors, so there are no PRP lists.
  io_queue(queue_maker& d, std::uint32_t qid, std::uint32_t depth, std::uint64_t ticket_start, bool sgls,
           const memory::ring_places& where = {});
  ~io_queue();
  io_queue& operator=(io_queue&&) = delete;

  std::uint32_t id() const { return qid_; }
  // Tickets: those below issued() were handed out, and of those below completed() every command has ended.
  std::uint64_t issued() const;
  std::uint64_t completed() const;
  dev::ring_view view() const;  // filled but for `index` and what doorbells::show fills
  // The ring takes no more work, and who waits for it hears that status. The first failure of a ring stays: it says
  // more.
  void fail(xio_status_t status, std::uint32_t vendor) const;
  // Runs a command before any kernel posts, and returns SCT<<8 | SC. The doorbells are the drive's registers, or the
  // words that a host thread carries there. Throws where it has not completed within `limit`: the queue is of no use
  // then.
  struct doorbell_words {
    std::uint32_t *sq, *cq;
  };
  std::uint32_t run_first(const wire::nvme::sqe& command, const doorbell_words& to, std::chrono::milliseconds limit);
  // The steps of it: posts and returns what to ring the submission side with; rings the completion side and returns
  // SCT<<8 | SC once the command has completed.
  std::uint32_t post_first(wire::nvme::sqe command);
  std::optional<std::uint32_t> take_first(std::uint32_t* cq_doorbell);
  // The values that were rung last.
  std::uint32_t tail() const { return static_cast<std::uint32_t>(issued()) & (depth_ - 1); }
  std::uint32_t head() const { return static_cast<std::uint32_t>(issued()) & (cq_depth_ - 1); }
  // Deletes the queues, which ends their commands. The ring's own memory stays.
  void stop() noexcept;

 private:
  void start_at(std::uint64_t ticket);

  queue_maker& drive_;
  std::uint32_t qid_, depth_, cq_depth_, op_count_;
  bool stopped_ = false;
  drive_memory sq_, cq_;
  std::optional<drive_memory> lists_;
  gpu::buffer state_, marks_, op_words_;
};

}  // namespace xio::nvme
