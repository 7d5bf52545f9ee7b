// SPDX-License-Identifier: MIT
// What the host's books say of a call on a stream before it is launched: each check throws a sentence.
#pragma once
#include "ctx/door.hpp"
#include "stream/job.hpp"

namespace xio::stream {

// A call that is being checked: what it names, and what will be launched.
class order {
 public:
  order(xio::world& w, const char* function, xio_ctx_t ctx, xio_stream_t stream, const xio_stream_attr_t* attr);

  // The members of a team; `root` is one of them.
  void team(xio_team_t t);
  void root(int root);
  std::size_t members() const { return launch_.team.n_pes; }
  bool is_member(int number) const { return launch_.team.my_pe == static_cast<std::uint32_t>(number); }

  void pe(int pe) const;
  // count * bytes of a block; throws where that is no number.
  std::size_t product(std::size_t count, std::size_t bytes, const char* what) const;
  void symmetric(const void* p, std::size_t bytes, const char* what) const;
  // Memory that the engine reaches that carries it to or from PE `pe`, or to any member.
  void local(const void* p, std::size_t bytes, const char* what, int pe) const;
  void local_of_team(const void* p, std::size_t bytes, const char* what) const;
  void for_drives(xio_storage_t s, const void* p, std::size_t bytes) const;
  // So many bytes of a storage that is open, from `offset` on.
  void storage(xio_storage_t s, std::uint64_t offset, std::size_t bytes, bool writes) const;
  // Memory that kernels load and store by themselves; null is none.
  void reached_by_kernels(const void* p, const char* what) const;
  // A word that signals change or waits look at.
  void word(const std::uint64_t* sig) const;
  void is_one_of(int value, int count, const char* what) const;
  void combines(xio_reduction_t op, xio_type_t type) const;

  // A failure is the call's own, and goes to this word of the device's.
  void fails_alone(std::uint32_t* mark) { mark_ = mark; }

  // Launches it.
  void copy(call what, const job& j);
  void give(call what, const job& j);
  // A collective, by many workgroups where that is worth it.
  void give_collective(call what, const job& j);

 private:
  bool by_engine(int pe) const;
  std::uint32_t sharers(call what, std::uint64_t bytes) const;
  void put_in_stream(std::uint32_t workgroups, bool last);

  xio::world& world_;
  const char* function_;
  const context& ctx_;
  launch launch_{};
  std::uint32_t* mark_ = nullptr;
  xio_stream_attr_t attr_{};
};

// Check the arguments of a call, and fill in the job.
void fill(job& j, void* dst, const void* src, std::size_t bytes, int pe);
void fill_put(const order& o, job& j, void* dst, const void* src, std::size_t bytes, int pe);
void fill_get(const order& o, job& j, void* dst, const void* src, std::size_t bytes, int pe);
void fill_signal(const order& o, job& j, std::uint64_t* sig, std::uint64_t value, xio_signal_op_t op, int pe);
void fill_wait(const order& o, job& j, const std::uint64_t* sig, xio_cmp_t cmp, std::uint64_t value);

}  // namespace xio::stream
