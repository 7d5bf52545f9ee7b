// SPDX-License-Identifier: MIT
#include "uverbs/device/doorbells.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <set>

namespace uverbs {
namespace {

constexpr std::size_t k_page = 4096;
constexpr std::size_t k_most_pages = 256;
constexpr std::uint32_t k_room = 1 << 14;

// Read in a signal handler, so it is memory that is always there.
struct page_entry {
  std::atomic<std::uintptr_t> at;
  std::atomic<std::uint32_t> page;
};
page_entry pages[k_most_pages];
std::mutex pages_lock;

doorbell stored[k_room];
std::uint32_t first, count;
std::atomic_flag stored_lock = ATOMIC_FLAG_INIT;

class hold {
 public:
  hold() {
    while (stored_lock.test_and_set(std::memory_order_acquire)) sched_yield();
  }
  ~hold() { stored_lock.clear(std::memory_order_release); }
};

// A store that has not left its core: one to the same address that comes first takes its place.
struct waiting_store {
  pid_t thread;  // 0: none
  timespec since;
  doorbell d;
};
constexpr std::uint32_t k_most_waiting = 64;
waiting_store waiting[k_most_waiting];
// Long for a lane, so that those of a wave come within it, and short for a test.
constexpr std::int64_t k_longest_ns = 2000000;

std::int64_t age_of(const waiting_store& w) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (now.tv_sec - w.since.tv_sec) * 1000000000 + (now.tv_nsec - w.since.tv_nsec);
}

// Under the lock; false: there is no room.
bool let_leave(waiting_store& w) {
  if (count == k_room) return false;
  stored[(first + count++) % k_room] = w.d;
  w.thread = 0;
  return true;
}

// Under the lock; false: there is no room.
bool keep_now(const doorbell& d, bool is_waited_for) {
  const pid_t me = gettid();
  waiting_store* at = nullptr;
  for (waiting_store& w : waiting)
    if (w.thread == me && w.d.page == d.page && w.d.offset == d.offset) at = &w;
  for (waiting_store& w : waiting)
    if (at == nullptr && w.thread == 0) at = &w;
  if (at == nullptr) return let_leave(waiting[0]) && keep_now(d, is_waited_for);
  if (at->thread == 0) clock_gettime(CLOCK_MONOTONIC, &at->since);
  at->thread = me;
  at->d = d;
  if (!is_waited_for) return true;
  for (waiting_store& w : waiting)
    if (w.thread == me && !let_leave(w)) return false;
  return true;
}

void keep(const doorbell& d, bool is_waited_for) {
  for (;;) {
    {
      const hold h;
      if (keep_now(d, is_waited_for)) return;
    }
    sched_yield();
  }
}

#if defined(__x86_64__)

// Bytes of the operand that a ModRM byte begins (AMD64 manual volume 3, 1.4).
std::size_t operand_bytes(const unsigned char* modrm) {
  const unsigned mod = modrm[0] >> 6, rm = modrm[0] & 7;
  std::size_t bytes = 1;
  bool wide = mod == 0 && rm == 5;
  if (rm == 4) {
    ++bytes;
    wide = mod == 0 && (modrm[1] & 7) == 5;
  }
  if (mod == 1) return bytes + 1;
  return mod == 2 || wide ? bytes + 4 : bytes;
}

// A store of 8 bytes from a register or of a constant, as compilers make it of an atomic store. False for another
// instruction, and so for a store of another size.
// is_waited_for: an SFENCE stands behind it, or it is locked.
bool read_store(ucontext_t* c, std::uint64_t* value, bool* is_waited_for) {
  static constexpr int k_registers[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                        REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  auto& regs = c->uc_mcontext.gregs;
  const auto* at = reinterpret_cast<const unsigned char*>(regs[REG_RIP]);
  const unsigned char* p = at;
  if (*p == 0xf0) ++p;  // lock
  const unsigned rex = *p++;
  if ((rex & 0xf8) != 0x48) return false;  // REX.W
  const unsigned opcode = *p++;
  const unsigned reg = ((*p >> 3) & 7) | ((rex & 4) << 1);
  std::size_t bytes = operand_bytes(p);
  if (opcode == 0x89 || opcode == 0x87) {
    *value = static_cast<std::uint64_t>(regs[k_registers[reg]]);
    if (opcode == 0x87) regs[k_registers[reg]] = 0;  // registers read as 0
  } else if (opcode == 0xc7 && reg == 0) {
    std::int32_t constant;
    std::memcpy(&constant, p + bytes, sizeof constant);
    *value = static_cast<std::uint64_t>(std::int64_t{constant});
    bytes += sizeof constant;
  } else {
    return false;
  }
  static constexpr unsigned char k_sfence[] = {0x0f, 0xae, 0xf8};
  *is_waited_for = opcode == 0x87 || std::memcmp(p + bytes, k_sfence, sizeof k_sfence) == 0;
  regs[REG_RIP] = reinterpret_cast<greg_t>(p + bytes);
  return true;
}

#else
bool read_store(ucontext_t*, std::uint64_t*, bool*) { return false; }
#endif

struct sigaction handler_before;
bool faults_are_taken = false;

void on_fault(int number, siginfo_t* info, void* context) {
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (const page_entry& e : pages) {
    if (e.at.load(std::memory_order_acquire) != (at & ~(k_page - 1)) || at < k_page) continue;
    doorbell d{e.page.load(), static_cast<std::uint32_t>(at & (k_page - 1)), 0};
    bool is_waited_for = false;
    if (read_store(static_cast<ucontext_t*>(context), &d.value, &is_waited_for) && (d.offset & 7) == 0)
      return keep(d, is_waited_for);
    static constexpr char k_text[] = "simulated RDMA device: a doorbell page takes aligned stores of 8 bytes alone\n";
    [[maybe_unused]] const auto written = write(2, k_text, sizeof k_text - 1);
    break;
  }
  // The rest is the program's own doing.
  if ((handler_before.sa_flags & SA_SIGINFO) != 0) return handler_before.sa_sigaction(number, info, context);
  sigaction(SIGSEGV, &handler_before, nullptr);
}

// Once: a handler that is installed later hands on what it does not know.
void take_faults() {
  if (faults_are_taken) return;
  faults_are_taken = true;
  sigaction(SIGSEGV, nullptr, &handler_before);
  struct sigaction ours {};
  ours.sa_sigaction = on_fault;
  // A thread of a kernel has a small stack of its own, and an OS thread one for signals.
  ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigaction(SIGSEGV, &ours, nullptr);
}

// By the numbers of their files: the page, 0 where it was freed, and how many doorbells came.
std::map<std::uint64_t, std::pair<std::uint32_t, unsigned>> exports;
std::set<std::uint64_t> mapped_exports;  // by a GPU

// A preloaded GPU knows pages of registers by this name.
int make_register_file() {
  const int fd = memfd_create("registers", MFD_CLOEXEC);
  return fd >= 0 && ftruncate(fd, k_page) == 0 ? fd : -1;
}

}  // namespace

void* map_doorbell_page(std::uint32_t page) {
  const std::lock_guard hold(pages_lock);
  for (page_entry& e : pages) {
    if (e.at != 0) continue;
    const int file = make_register_file();
    void* at = mmap(nullptr, k_page, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (at == MAP_FAILED) return nullptr;
    take_faults();
    e.page = page;
    e.at.store(reinterpret_cast<std::uintptr_t>(at), std::memory_order_release);
    return at;
  }
  return nullptr;
}

void forget_doorbell_pages(void* at, std::size_t bytes) {
  const auto from = reinterpret_cast<std::uintptr_t>(at);
  for (page_entry& e : pages) {
    const std::uintptr_t page = e.at.load();
    if (page != 0 && page >= from && page - from < bytes) e.at = 0;
  }
}

int export_doorbell_page(std::uint32_t page) {
  const int fd = make_register_file();
  struct stat s {};
  const std::lock_guard hold(pages_lock);
  if (fstat(fd, &s) == 0) exports[s.st_ino] = {page, 0};
  return fd;
}

void revoke_doorbell_page(std::uint32_t page) {
  const std::lock_guard hold(pages_lock);
  for (auto& [file, e] : exports) {
    if (e.first != page) continue;
    if (mapped_exports.contains(file))
      std::fputs("simulated RDMA device: a doorbell page is freed while a GPU maps it\n", stderr), std::abort();
    if (e.second != 0) std::fprintf(stderr, "simulated RDMA device: %u doorbells came by a dma-buf\n", e.second);
    e.first = 0;
  }
}

bool take_doorbell(doorbell* to) {
  const hold h;
  for (waiting_store& w : waiting)
    if (w.thread != 0 && age_of(w) > k_longest_ns) let_leave(w);
  if (count == 0) return false;
  *to = stored[first % k_room];
  first = (first + 1) % k_room;
  --count;
  return true;
}

}  // namespace uverbs

// A kernel of a preloaded GPU has stored there; odd offset: has mapped it (1) or not (0). -1: nobody has these
// registers any more.
extern "C" __attribute__((visibility("default"))) int xio_registers_written(std::uint64_t file, std::uint64_t offset,
                                                                            std::uint64_t value) {
  std::unique_lock hold(uverbs::pages_lock);
  const auto found = uverbs::exports.find(file);
  const std::uint32_t page = found == uverbs::exports.end() ? ~0u : found->second.first;
  if (offset % 2 != 0 && value != 0) uverbs::mapped_exports.insert(file);
  if (offset % 2 != 0 && value == 0) uverbs::mapped_exports.erase(file);
  if (page == ~0u || page == 0 || offset % 2 != 0) return page == 0 ? -1 : 0;
  ++found->second.second;
  hold.unlock();
  uverbs::keep({page, static_cast<std::uint32_t>(offset), value}, true);
  return 0;
}
