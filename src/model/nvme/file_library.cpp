// SPDX-License-Identifier: MIT
#include "model/nvme/file_library.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"

namespace xio::model::nvme {
namespace {

using by = option::storage_files_by;

constexpr std::size_t k_threads = 8;  // in the library's calls, which return when all is done
constexpr const char* k_staged = " and copies of pinned memory";
constexpr unsigned k_most_refused = 4;  // in a row, after which the library is asked no more

// As hipfile.h (ROCm/hipFile 0.2.0) and cufile.h (CUDA 13.0) have them, which are one interface with two prefixes.
struct result {
  int code, of_driver;  // 0: done
};
struct description {
  int type;  // 1: a descriptor
  union {
    int fd;
    void* other;
  };
  const void* operations;
};
struct calls {
  result (*driver_open)();
  result (*driver_close)();
  result (*handle_register)(void** handle, description* what);
  void (*handle_deregister)(void* handle);
  result (*buffer_register)(const void* base, std::size_t bytes, int flags);
  result (*buffer_deregister)(const void* base);
  ssize_t (*read)(void* handle, void* base, std::size_t bytes, off_t from, off_t inside);
  ssize_t (*write)(void* handle, const void* base, std::size_t bytes, off_t to, off_t inside);
  void* version;
};
struct vendor {
  const char *name, *file;  // its calls begin with the name
  const char* driver_close;
  unsigned major;
};
constexpr vendor k_hipfile{"hipFile", "libhipfile.so.0", "DriverClose", 0};
constexpr vendor k_cufile{"cuFile", "libcufile.so.0", "DriverClose_v2", 1};

// A library with its driver open; all files of a process share it. Refusals are sentences.
class library {
 public:
  library(const vendor& v, const std::string& file) {
    void* loaded = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays: it may have threads
    if (loaded == nullptr) fail(XIO_ERR_UNSUPPORTED, "no {}: {}", v.name, dlerror());
    // Otherwise hipFile copies by the CPU what it cannot do, on a stream that waits for kernels, which may wait for
    // that read (src/amd_detail/backend/fallback.cpp).
    if (&v == &k_hipfile) setenv("HIPFILE_ALLOW_COMPAT_MODE", "false", 0);
    std::byte* place = reinterpret_cast<std::byte*>(&call);
    for (const char* one : {"DriverOpen", v.driver_close, "HandleRegister", "HandleDeregister", "BufRegister",
                            "BufDeregister", "Read", "Write", "GetVersion"}) {
      void* found = dlsym(loaded, (std::string(v.name) + one).c_str());
      if (found == nullptr) fail(XIO_ERR_UNSUPPORTED, "{} has no call {}{}; install another", file, v.name, one);
      std::memcpy(std::exchange(place, place + sizeof found), &found, sizeof found);
    }
    unsigned major = 0, minor = 0, patch = 0;
    if (&v == &k_hipfile) {
      (void)reinterpret_cast<result (*)(unsigned*, unsigned*, unsigned*)>(call.version)(&major, &minor, &patch);
    } else {
      int together = 0;  // 1150: 1.15
      (void)reinterpret_cast<result (*)(int*)>(call.version)(&together);
      major = static_cast<unsigned>(together) / 1000;
      minor = static_cast<unsigned>(together) % 1000 / 10;
    }
    name = fmt::format("{} {}.{}.{}", v.name, major, minor, patch);
    if (major != v.major)
      fail(XIO_ERR_UNSUPPORTED, "{} is another version than {}, which XIO knows; install that", name, v.major);
    if (const result r = call.driver_open(); r.code != 0)
      fail(XIO_ERR_UNSUPPORTED, "{} does not open its driver: its error {}, {} of the GPU's", name, r.code,
           r.of_driver);
  }
  ~library() { (void)call.driver_close(); }

  static std::shared_ptr<library> load(const vendor& v, const std::string& file) {
    static std::mutex lock;
    static std::map<std::string, std::weak_ptr<library>> all;
    const std::lock_guard hold(lock);
    auto& known = all[file];
    auto one = known.lock();
    if (one == nullptr) known = one = std::make_shared<library>(v, file);
    return one;
  }

  // Registers memory, so that the library need not look it up, or copy by buffers of its own, in each call.
  void lend(void* base, std::size_t bytes) {
    const std::lock_guard hold(lock_);
    auto& known = lent_[static_cast<std::byte*>(base)];
    if (known.users++ != 0) return;
    const result r = call.buffer_register(base, bytes, 0);
    if (r.code == 0)
      known.bytes = bytes;
    else
      log::info(
          "{} does not register {} bytes at {}: its error {}, {} of the GPU's; it moves files' data there as well",
          name, bytes, base, r.code, r.of_driver);
  }
  void take_back(const void* base) {
    const std::lock_guard hold(lock_);
    const auto known = lent_.find(static_cast<const std::byte*>(base));
    if (known == lent_.end() || --known->second.users != 0) return;
    if (known->second.bytes != 0) (void)call.buffer_deregister(base);
    lent_.erase(known);
  }
  // A call names registered memory by its base.
  std::pair<void*, off_t> place_of(void* at, std::size_t bytes) {
    const std::lock_guard hold(lock_);
    const auto* const from = static_cast<const std::byte*>(at);
    auto known = lent_.upper_bound(from);
    if (known == lent_.begin() || from + bytes > (--known)->first + known->second.bytes) return {at, 0};
    return {const_cast<std::byte*>(known->first), from - known->first};
  }

  calls call{};
  std::string name;

 private:
  struct memory {
    std::size_t bytes = 0;  // 0: not registered
    unsigned users = 0;     // drives
  };
  std::mutex lock_;
  std::map<const std::byte*, memory> lent_;
};

// Threads that make the library's calls for whole pages; everything else is for `rest`, and so is again what the
// library does not do whole. A job's status is thus always one of the operating system.
class library_engine : public file_engine {
 public:
  // Delegates, so that the destructor runs for refusals.
  library_engine(std::shared_ptr<library> l, file& backing, const payload_agent& payload,
                 std::unique_ptr<file_engine> rest)
      : library_engine(std::move(l), backing.path(), payload, std::move(rest)) {
    description what{};
    what.type = 1;
    what.fd = backing.direct() >= 0 ? backing.direct() : backing.fd();  // cuFile's short way wants O_DIRECT
    if (const result r = library_->call.handle_register(&handle_, &what); r.code != 0)
      fail(XIO_ERR_UNSUPPORTED, "{} does not take {}: its error {}, {} of the GPU's; use XIO_STORAGE_FILES_BY=io_uring",
           library_->name, path_, r.code, r.of_driver);
    for (std::size_t i = 0; i < k_threads; ++i)
      threads_.push_back(start_thread("files by a library", [this] { serve(); }));
  }
  ~library_engine() override {
    {
      const std::lock_guard hold(lock_);
      ends_ = true;
    }
    wanted_.notify_all();
    for (std::thread& t : threads_) t.join();
    if (handle_ != nullptr) library_->call.handle_deregister(handle_);
  }

  const char* name() const override { return rest_->name(); }
  std::size_t room() const override { return rest_->room() - std::min(rest_->room(), in_flight_); }
  bool assist() override { return rest_->assist(); }
  void lend(void* base, std::size_t bytes) override { library_->lend(base, bytes); }
  void take_back(const void* base) override { library_->take_back(base); }
  void kick() override { rest_->kick(); }
  // Memory is of whole pages too: elsewhere hipFile refuses, and cuFile copies.
  bool takes(const file_job& job) const override {
    return refused_ < k_most_refused && is_whole_pages(job) && std::ranges::all_of(job.parts, [](const iovec& v) {
             return (reinterpret_cast<std::uintptr_t>(v.iov_base) | v.iov_len) % k_whole_page == 0;
           });
  }

  void start(file_job& job) override {
    if (job.by != file_job::way::library) return rest_->start(job);
    ++in_flight_;
    {
      const std::lock_guard hold(lock_);
      waiting_.push_back(&job);
    }
    wanted_.notify_one();
  }

  void reap(std::vector<file_job*>& done) override {
    rest_->reap(done);
    if (in_flight_ == 0) return;
    std::vector<file_job*> over;
    {
      const std::lock_guard hold(lock_);
      over.swap(over_);
    }
    in_flight_ -= over.size();
    for (file_job* job : over) {
      if (!job->durable || job->by == file_job::way::declined) {
        done.push_back(job);
      } else {
        job->what = file_job::kind::sync;
        rest_->start(*job);
      }
    }
    if (!over.empty()) rest_->kick();
  }

 private:
  library_engine(std::shared_ptr<library> l, const std::string& path, const payload_agent& payload,
                 std::unique_ptr<file_engine> rest)
      : library_(std::move(l)), path_(path), payload_(payload), rest_(std::move(rest)) {}

  void serve() {
    if (payload_.use_device != nullptr) payload_.use_device();
    std::unique_lock hold(lock_);
    while (true) {
      wanted_.wait(hold, [&] { return ends_ || !waiting_.empty(); });
      if (ends_) return;
      file_job* job = waiting_.front();
      waiting_.pop_front();
      hold.unlock();
      job->by = carry_out(*job) ? file_job::way::cache : file_job::way::declined;
      hold.lock();
      over_.push_back(job);
    }
  }

  bool carry_out(const file_job& job) {
    off_t at = static_cast<off_t>(job.offset);
    for (const iovec& v : job.parts) {
      errno = 0;
      const auto [base, inside] = library_->place_of(v.iov_base, v.iov_len);
      const ssize_t n = job.what == file_job::kind::read ? library_->call.read(handle_, base, v.iov_len, at, inside)
                                                         : library_->call.write(handle_, base, v.iov_len, at, inside);
      const int err = errno;
      if (n != static_cast<ssize_t>(v.iov_len)) {
        if (const unsigned before = refused_++; before < k_most_refused)
          log::warn("{}: {} bytes at byte {} of {} came to {} ({}); done through the host{}", library_->name, v.iov_len,
                    at, path_, n, n == -1 ? errno_text(err) : "bytes, or its error",
                    before + 1 == k_most_refused ? ", as all from now on" : "");
        return false;
      }
      at += n;
    }
    if (refused_ < k_most_refused) refused_ = 0;
    return true;
  }

  std::shared_ptr<library> library_;
  std::string path_;
  const payload_agent& payload_;
  std::unique_ptr<file_engine> rest_;
  void* handle_ = nullptr;
  std::size_t in_flight_ = 0;  // the caller's
  std::atomic<unsigned> refused_{0};
  std::mutex lock_;
  std::condition_variable wanted_;
  bool ends_ = false;
  std::deque<file_job*> waiting_;
  std::vector<file_job*> over_;
  std::vector<std::thread> threads_;
};

// Null, and the reason, where there is none to be asked for.
std::shared_ptr<library> find_library(const library_choice& asked, const payload_agent& payload, std::string& why) {
  const by which = asked.by == by::automatic ? payload.files_by : asked.by;
  why = asked.by == by::io_uring ? "XIO_STORAGE_FILES_BY asks for it" : "kernels' memory is the host's";
  if (which == by::automatic || which == by::io_uring) return nullptr;
  const vendor& v = which == by::hipfile ? k_hipfile : k_cufile;
  // cuFile copies by the CPU without this driver, and may do so behind kernels.
  if (asked.by == by::automatic && asked.file.empty() && which == by::cufile &&
      access("/proc/driver/nvidia-fs", F_OK) != 0)
    fail(XIO_ERR_UNSUPPORTED, "no driver nvidia-fs, without which cuFile copies by the CPU");
  return library::load(v, asked.file.empty() ? v.file : asked.file);
}

}  // namespace

std::unique_ptr<file_engine> choose_file_engine(const library_choice& asked, file& backing,
                                                const payload_agent& payload, std::span<std::byte> staging,
                                                std::string& said) {
  const auto by_host = [&] {
    auto engine = make_file_engine(backing.fd(), backing.direct_if_asked(), staging);
    return payload.direct ? std::move(engine) : make_staged_engine(std::move(engine), payload, staging);
  };
  auto engine = by_host();
  said = engine->name() + std::string(payload.direct ? "" : k_staged);
  try {
    std::string why;
    const auto found = find_library(asked, payload, why);
    if (found == nullptr) return engine;
    engine = std::make_unique<library_engine>(found, backing, payload, std::move(engine));
    said = found->name + ", else " + said;
    return engine;
  } catch (const std::exception& e) {
    if (asked.by != by::automatic) throw;
    said += fmt::format(" ({})", e.what());
    return by_host();
  }
}

std::string describe_file_library(const library_choice& asked, const payload_agent& payload) {
  try {
    std::string why;
    const auto found = find_library(asked, payload, why);
    if (found != nullptr) return found->name;
    return fmt::format("io_uring{}: {}", payload.direct ? "" : k_staged, why);
  } catch (const std::exception& e) {
    return fmt::format("io_uring{}: {}", payload.direct ? "" : k_staged, e.what());
  }
}

}  // namespace xio::model::nvme
