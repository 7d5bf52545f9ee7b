// SPDX-License-Identifier: MIT
#include "amdgpu/driver/process.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "amdgpu/driver/kfd_uapi.hpp"
#include "amdgpu/driver/topology.hpp"
#include "amdgpu/isa/sites.hpp"

namespace amdgpu {
namespace {

constexpr unsigned k_doorbells = k_doorbell_bytes / sizeof(std::uint64_t);
constexpr unsigned k_engine_queues = 8;
// Doorbells of copy engines (kfd_device_queue_manager.c, allocate_doorbell; amdgpu_doorbell.h): from the first on each
// engine has these many; its odd queues have theirs on the second page. Lanes' stores find their way by blocks of four
// on gfx942, so newer kernels let odd engines begin two later.
constexpr unsigned k_first_engine_doorbell = 0x100, k_engine_doorbells = 10, k_second_page = 512, k_aligned_by = 2;
constexpr unsigned k_lost_doorbells = 2;

std::atomic<process*> the_process;
std::mutex making;

std::map<std::uint64_t, ignoring> ignored_sites(const settings& s) {
  std::map<std::uint64_t, ignoring> all;
  if (s.ignored != 0) all[s.ignored] = ignoring::all;
  std::ifstream list(s.ignored_list);
  for (std::string line; std::getline(list, line);)
    all[std::strtoull(line.c_str(), nullptr, 16)] = line.ends_with(" wait") ? ignoring::wait : ignoring::all;
  return all;
}

// A child that is forked has none of the threads, and opens the driver anew (libhsakmt does).
void forget_in_child() { the_process = nullptr; }

void stop_at_exit() {
  if (process* p = the_process.load()) p->gpus.stop();
}

// Every allocation holds a descriptor.
void raise_limit() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

process* process::current() {
  if (process* p = the_process.load(std::memory_order_acquire)) return p;
  const std::lock_guard hold(making);
  if (process* p = the_process.load()) return p;
  settings s;
  if (const auto wrong = read_settings(s, [](const char* name) { return std::getenv(name); })) {
    std::fprintf(stderr, "software AMD GPU: %s\n", wrong->c_str());
    return nullptr;
  }
  watch_sites(ignored_sites(s), s.sites);
  raise_limit();
  static const int once = pthread_atfork(nullptr, nullptr, forget_in_child) + std::atexit(stop_at_exit);
  static_cast<void>(once);
  // Never destroyed: its threads run to the end of the process.
  the_process = new process(s);
  return the_process.load();
}

process* process::made() { return the_process.load(std::memory_order_acquire); }

process::process(const settings& s)
    : chosen(s),
      tables(s.nodes()),
      gpus(chosen, turns, tables, happenings),
      memory(chosen, turns, tables,
             [this](unsigned gpu, const mapping& m, bool mapped) { gpus.mapped(gpu, m, mapped); }),
      vms_(s.nodes()),
      doorbells_(s.nodes()) {}

int process::acquire_vm(unsigned gpu, std::uint64_t file) {
  const std::lock_guard hold(lock_);
  if (vms_[gpu] == 0) vms_[gpu] = file;
  return vms_[gpu] == file ? 0 : EBUSY;
}

bool process::has_vm(unsigned gpu) const {
  const std::lock_guard hold(lock_);
  return vms_[gpu] != 0;
}

bool process::doorbells_may_be_lost() const {
  return chosen.doorbells == "deaf" || (chosen.doorbells == "lost" && chosen.target == "gfx942");
}

int process::make_doorbells(unsigned gpu) {
  doorbell_page& page = doorbells_[gpu];
  if (page.words != nullptr) return 0;
  page.file = make_memory_file({gpu_id_of(gpu), uapi::doorbell | uapi::writable}, k_doorbell_bytes);
  if (!page.file) return ENOMEM;
  void* words = map_anywhere(k_doorbell_bytes, page.file.get());
  if (words == nullptr) return ENOMEM;
  page.used.assign(k_doorbells, false);
  if (const int failed =
          memory.allocate({0, k_doorbell_bytes, uapi::doorbell | uapi::writable, gpu}, page.file.get(), &page.handle);
      failed != 0)
    return failed;
  page.words = static_cast<std::uint64_t*>(words);
  if (doorbells_may_be_lost()) {
    void* lanes = ::mmap(nullptr, k_doorbell_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (lanes == MAP_FAILED) return ENOMEM;
    page.lanes = static_cast<std::uint64_t*>(lanes);
  }
  return 0;
}

int process::doorbells_of(unsigned gpu) {
  const std::lock_guard hold(lock_);
  return make_doorbells(gpu) == 0 ? doorbells_[gpu].file.get() : -1;
}

std::uint64_t process::lane_doorbells_of(unsigned gpu) {
  const std::lock_guard hold(lock_);
  return reinterpret_cast<std::uint64_t>(doorbells_[gpu].lanes);
}

bool process::is_of_queue(std::uint64_t base, unsigned gpu) const {
  const std::lock_guard hold(lock_);
  return base != 0 && std::ranges::any_of(bells_, [&](const bell& b) {
           return b.gpu == gpu && std::ranges::find(b.buffers, base) != std::end(b.buffers);
         });
}

// The first free queue of the engine, or of the engines for PCIe or for xGMI, which are taken in turn.
int process::place_of(const queue_kind& kind, unsigned gpu, place& out) const {
  const auto pcie = static_cast<unsigned>(std::min<std::uint64_t>(chosen.copy_engines, 2));
  const auto all = static_cast<unsigned>(chosen.copy_engines);
  const unsigned first = kind.type == uapi::sdma_xgmi ? pcie : kind.type == uapi::sdma ? 0 : kind.engine;
  const unsigned end = kind.type == uapi::sdma_xgmi ? all : kind.type == uapi::sdma ? pcie : kind.engine + 1;
  for (unsigned q = 0; q < k_engine_queues; ++q)
    for (unsigned e = first; e < end; ++e) {
      const auto is_there = [&](const bell& b) {
        return b.gpu == gpu && b.engine == static_cast<int>(e) && b.number == static_cast<int>(q);
      };
      if (std::ranges::any_of(bells_, is_there)) continue;
      out = {e, q};
      return 0;
    }
  return ENOMEM;
}

unsigned process::doorbell_of(const place& at) const {
  const bool is_aligned = chosen.doorbells == "aligned" && at.engine % 2 == 1;
  return k_first_engine_doorbell + k_engine_doorbells * at.engine + at.queue / 2 + k_second_page * (at.queue % 2) +
         (is_aligned ? k_aligned_by : 0);
}

int process::create_queue(const queue_kind& kind, unsigned gpu, queue_request r, std::uint32_t* id,
                          std::uint64_t* doorbell_at) {
  const std::lock_guard hold(lock_);
  if (const int failed = make_doorbells(gpu); failed != 0) return failed;
  doorbell_page& page = doorbells_[gpu];
  const bool computes = kind.type == uapi::compute_aql;
  place at{};
  if (const int failed = computes ? 0 : place_of(kind, gpu, at); failed != 0) return failed;
  const auto engines = page.used.begin() + k_first_engine_doorbell;
  const auto unused = computes ? std::find(page.used.begin(), engines, false) : page.used.begin() + doorbell_of(at);
  if (computes && unused == engines) return ENOSPC;
  const auto slot = static_cast<unsigned>(unused - page.used.begin());
  r.doorbell = page.words + slot;
  r.gpu = gpu;
  // No packet's number, and no position in a ring.
  *r.doorbell = computes ? ~std::uint64_t{0} : 0;
  if (page.lanes != nullptr && !computes && chosen.doorbells != "deaf" &&
      (at.engine % 2 == 0 || at.queue / 2 >= k_lost_doorbells)) {
    r.lanes_doorbell = page.lanes + slot;
    *r.lanes_doorbell = 0;
  }
  const int failed = computes ? gpus.add_aql(r, id) : gpus.add_sdma(r, id);
  if (failed != 0) return failed;
  page.used[slot] = true;
  bell made{*id, gpu, slot, -1, -1, {}};
  if (!computes) {
    made.engine = static_cast<int>(at.engine);
    made.number = static_cast<int>(at.queue);
    const auto page_of = [](const std::uint64_t* word) {
      return reinterpret_cast<std::uint64_t>(word) & ~std::uint64_t{4095};
    };
    made.buffers[0] = r.ring;
    made.buffers[1] = page_of(r.write_pointer);
    made.buffers[2] = page_of(r.read_pointer);
  }
  bells_.push_back(made);
  *doorbell_at = memory_objects::offset_of(page.handle) + slot * sizeof(std::uint64_t);
  return 0;
}

int process::destroy_queue(std::uint32_t id) {
  const std::lock_guard hold(lock_);
  if (const int failed = gpus.remove(id); failed != 0) return failed;
  const auto bell_of = std::ranges::find_if(bells_, [&](const bell& b) { return b.queue == id; });
  if (bell_of != bells_.end()) {
    doorbells_[bell_of->gpu].used[bell_of->slot] = false;
    bells_.erase(bell_of);
  }
  return 0;
}

}  // namespace amdgpu
