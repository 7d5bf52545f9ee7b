// SPDX-License-Identifier: MIT
// Reading and writing the file behind a drive, some jobs at a time: io_uring where it is there, else plain calls. Data
// in the page cache is moved by a plain call in either case: one costs less than a job's way through io_uring.
#pragma once
#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

namespace xio {
struct payload_agent;
}

namespace xio::model::nvme {

// Stays where it is from start() until reap() hands it back.
struct file_job {
  enum class kind { read, write, sync, zero } what;
  bool durable = false;  // a write or zeroing that is on the medium when it is over
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // of zero
  std::vector<iovec> parts;
  std::size_t part = 0;  // the first that is not finished
  int error = 0;         // errno
  // staged: to or from memory that the operating system does not reach. declined: by the library, and nothing is done
  // yet.
  enum class way { cache, direct, library, staged, declined } by = way::cache;
  bool unmapped = false;  // a staged job's memory went away: it is copied no more
  bool apart = false;     // by a thread of the kernel's from the start, beside others

  // Takes `bytes` from the front of what is left. True when nothing is left.
  bool advance(std::size_t bytes);
  // Takes in a result as read() gives it, or a negative errno. True: the job is over; else it has changed and wants
  // another turn.
  bool apply_result(long result);

 private:
  bool apply_zeroing(long result);
};

// Between a file's page cache and what goes past it lies a page: less would be read, changed and written by some, and
// another's bytes in it lost.
constexpr std::uint64_t k_whole_page = 4096;
bool is_whole_pages(const file_job& job);

class file_engine {
 public:
  virtual ~file_engine() = default;  // nothing is in flight any more
  virtual const char* name() const = 0;
  virtual std::size_t room() const = 0;  // jobs that may be started before others are over
  bool full() const { return room() == 0; }
  virtual void start(file_job& job) = 0;
  virtual void kick() = 0;  // after some start()
  virtual void reap(std::vector<file_job*>& done) = 0;
  virtual bool takes(const file_job& /*job*/) const { return false; }  // by way::library, from or to GPU memory
  // Memory of GPUs that jobs may name, and that none names any more. By any thread.
  virtual void lend(void* /*base*/, std::size_t /*bytes*/) {}
  virtual void take_back(const void* /*base*/) {}
  // By another thread that has nothing to do, at any time: carries out some of what is being kicked. True if there was
  // any.
  virtual bool assist() { return false; }
};

// Makes one system call for a job's next part; returns read()'s result, or a negative errno. flags are preadv2's.
long call(int fd, const file_job& job, int flags);

// direct: -1, or the same file past the page cache: whole pages then go there.
std::unique_ptr<file_engine> make_plain_engine(int fd, int direct = -1);
// fixed: memory of jobs, whose pages the kernel looks up once and not each time; {}: none. Null if this build or kernel
// has no io_uring.
std::unique_ptr<file_engine> make_uring_engine(int fd, int direct = -1, std::span<std::byte> fixed = {});
// How often the calling thread has slept in the kernel since it began, which is not how often it lost its core.
long sleeps();
// How a thread that also serves others tries calls that may wait. After one that took longer than `prompt`, calls are
// watched for `rest` times as long: it may only have lost its core. If one of them takes as long and has slept, for a
// disk, a journal or another writer, there is none for `rest` times as long.
struct trying {
  std::chrono::microseconds prompt{500};
  int rest = 10;
  long (*sleeps)() = &nvme::sleeps;
  unsigned cores = std::thread::hardware_concurrency();
};
// One thread copies some 8 GB/s out of the page cache. Of long reads that come together it makes one, where there are
// cores for others.
constexpr std::size_t k_long_read = 128 << 10;
constexpr unsigned k_cores_for_others = 4;
// Does at once what the page cache can do at once, and gives the rest to `patient`. direct: whole pages are the rest.
std::unique_ptr<file_engine> make_cache_engine(int fd, std::unique_ptr<file_engine> patient, trying how = {},
                                               bool direct = false);
std::unique_ptr<file_engine> make_file_engine(int fd, int direct = -1,
                                              std::span<std::byte> fixed = {});  // the best there is

// Does jobs by way::staged through `staging`, memory that outlives it, or through memory of its own where that is
// empty, and the agent's copies.
constexpr std::size_t k_staged_piece = 256 << 10, k_staging_bytes = 32 * k_staged_piece;
std::unique_ptr<file_engine> make_staged_engine(std::unique_ptr<file_engine> rest, const payload_agent& payload,
                                                std::span<std::byte> staging = {});

}  // namespace xio::model::nvme
