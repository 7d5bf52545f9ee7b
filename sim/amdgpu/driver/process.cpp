// SPDX-License-Identifier: MIT
#include "amdgpu/driver/process.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "amdgpu/driver/kfd_uapi.hpp"
#include "amdgpu/driver/topology.hpp"
#include "amdgpu/isa/sites.hpp"

namespace amdgpu {

namespace {

// libhsakmt maps 1024 doorbells of 8 bytes (src/queues.c).
constexpr std::uint64_t k_doorbell_bytes = 8192;
constexpr unsigned k_doorbells = 1024;

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
      doorbells_(s.nodes()) {}

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
  return 0;
}

int process::doorbells_of(unsigned gpu) {
  const std::lock_guard hold(lock_);
  return make_doorbells(gpu) == 0 ? doorbells_[gpu].file.get() : -1;
}

int process::create_queue(std::uint32_t type, unsigned gpu, queue_request r, std::uint32_t* id,
                          std::uint64_t* doorbell_at) {
  const std::lock_guard hold(lock_);
  if (const int failed = make_doorbells(gpu); failed != 0) return failed;
  doorbell_page& page = doorbells_[gpu];
  const auto unused = std::find(page.used.begin(), page.used.end(), false);
  if (unused == page.used.end()) return ENOSPC;
  const auto slot = static_cast<unsigned>(unused - page.used.begin());
  r.doorbell = page.words + slot;
  r.gpu = gpu;
  // No packet's number, and no position in a ring.
  *r.doorbell = type == uapi::compute_aql ? ~std::uint64_t{0} : 0;
  const int failed = type == uapi::compute_aql ? gpus.add_aql(r, id) : gpus.add_sdma(r, id);
  if (failed != 0) return failed;
  page.used[slot] = true;
  bells_.push_back({*id, gpu, slot});
  *doorbell_at = memory_objects::offset_of(page.handle) + slot * sizeof(std::uint64_t);
  return 0;
}

int process::destroy_queue(std::uint32_t id) {
  const std::lock_guard hold(lock_);
  if (const int failed = gpus.remove(id); failed != 0) return failed;
  const auto bell_of = std::find_if(bells_.begin(), bells_.end(), [&](const bell& b) { return b.queue == id; });
  if (bell_of != bells_.end()) {
    doorbells_[bell_of->gpu].used[bell_of->slot] = false;
    bells_.erase(bell_of);
  }
  return 0;
}

}  // namespace amdgpu
