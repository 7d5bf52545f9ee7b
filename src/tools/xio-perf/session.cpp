// SPDX-License-Identifier: MIT
#include "tools/xio-perf/session.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "tools/xio-perf/data.hpp"

namespace xio::perf {
namespace {

// Most times that are exchanged at once.
constexpr std::size_t k_exchanged = 1024;
constexpr std::size_t k_slack = std::size_t{4} << 20;

void checked_hip(hipError_t e, const char* what) {
  if (e != hipSuccess)
    fail(XIO_ERR_TRANSPORT, "{}: {}; with fewer threads (-t) or workgroups (-c) it may fit", what,
         hipGetErrorString(e));
}

template <class T>
T* symmetric(xio_world_t* world, std::size_t bytes) {
  void* block = nullptr;
  xio::perf::checked(xio_calloc(world, 1, bytes, &block), "xio_calloc");
  return static_cast<T*>(block);
}

// Whole pages of a file go by hipFile and cuFile, and past the page cache, only from and to whole pages.
char* pages(xio_world_t* world, std::size_t bytes) {
  void* block = nullptr;
  xio::perf::checked(xio_align(world, 4096, bytes, &block), "xio_align");
  return static_cast<char*>(block);
}

}  // namespace

void checked(xio_status_t status, const char* what) {
  if (status == XIO_OK) return;
  const std::string why = xio_last_error();
  fail(status, "{}: {}", what, why);
}

// --- What kernels return -----------------------------------------------------------------------------

namespace {

// Before the samples: status, bad values, the gate, each on a line of its own.
constexpr std::size_t k_line = 128;
constexpr std::size_t k_head = 3 * k_line;

// Returns the ctx's own error text, or nothing.
std::string why(xio_world_t* world, xio_ctx_t ctx) {
  xio_error_info_t info = XIO_ERROR_INFO_INIT;
  if (xio_ctx_error(world, ctx, &info) != XIO_OK || info.status == XIO_OK) return "";
  return fmt::format(": {}", info.sentence);
}

}  // namespace

kernel_results::~kernel_results() {
  if (block_ != nullptr) (void)hipFree(block_);
}

void kernel_results::prepare(work& w, std::size_t n_samples, std::size_t n_spans) {
  const std::size_t need = k_head + n_samples * sizeof(std::uint64_t) + n_spans * sizeof(span);
  if (need > bytes_) {
    if (block_ != nullptr) (void)hipFree(block_);
    block_ = nullptr;
    bytes_ = 0;
    checked_hip(hipMalloc(&block_, need), "room for samples");
    bytes_ = need;
  }
  checked_hip(hipMemset(block_, 0, need), "clearing samples");
  checked_hip(hipDeviceSynchronize(), "clearing samples");
  auto* at = static_cast<unsigned char*>(block_);
  w.status = reinterpret_cast<int*>(at);
  w.bad = reinterpret_cast<std::uint64_t*>(at + k_line);
  w.gate = reinterpret_cast<std::uint64_t*>(at + 2 * k_line);
  w.samples = reinterpret_cast<std::uint64_t*>(at + k_head);
  w.spans = reinterpret_cast<span*>(at + k_head + n_samples * sizeof(std::uint64_t));
  samples.resize(n_samples);
  spans.resize(n_spans);
}

void kernel_results::collect(const char* what, xio_world_t* world, xio_ctx_t ctx) {
  checked_hip(hipGetLastError(), what);
  checked_hip(hipDeviceSynchronize(), what);
  const auto* at = static_cast<const unsigned char*>(block_);
  int status = XIO_OK;
  std::uint64_t bad = 0;
  checked_hip(hipMemcpy(&status, at, sizeof status, hipMemcpyDeviceToHost), what);
  checked_hip(hipMemcpy(&bad, at + k_line, sizeof bad, hipMemcpyDeviceToHost), what);
  if (status != XIO_OK)
    fail(static_cast<xio_status_t>(status), "{}: an op returned {}{}", what,
         xio_status_name(static_cast<xio_status_t>(status)), why(world, ctx));
  if (bad != 0) fail(XIO_ERR_TRANSPORT, "{}: {} values were not what they had to be", what, bad);
  const std::size_t sample_bytes = samples.size() * sizeof(std::uint64_t);
  if (sample_bytes != 0) checked_hip(hipMemcpy(samples.data(), at + k_head, sample_bytes, hipMemcpyDeviceToHost), what);
  checked_hip(hipMemcpy(spans.data(), at + k_head + sample_bytes, spans.size() * sizeof(span), hipMemcpyDeviceToHost),
              what);
}

// --- The world ---------------------------------------------------------------------------------------

void session::init(const heap_need& need) {
  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.heap_bytes = need.src + need.dst + 2 * k_guard + (need.teams + 1) * k_slack;
  checked(xio_init(&attr, &world_), "xio_init");
}

session::session(const std::function<heap_need(int)>& need_for, int n_guess) {
  heap_need need = need_for(n_guess);
  init(need);
  n_ = xio_n_pes(world_);
  if (n_ != n_guess) {
    const heap_need now = need_for(n_);
    if (now.src > need.src || now.dst > need.dst) {
      close();
      init(now);
    }
    need = now;
  }
  me_ = xio_my_pe(world_);
  src = pages(world_, need.src + k_guard);
  dst = pages(world_, need.dst + k_guard);
  words_ = symmetric<words>(world_, sizeof(words));
  exchange_ = symmetric<char>(world_, 2 * k_exchanged * sizeof(double));
  fill_pattern(src, me_, need.src);
}

// An exception ends the process: others may wait for this PE, and finalize would wait for them.
session::~session() = default;

void session::close() {
  checked(xio_finalize(world_), "xio_finalize");
  world_ = nullptr;
}

xio_ctx_t session::ctx(xio_route_t route) {
  const auto at = contexts_.find(route);
  if (at != contexts_.end()) return at->second;
  xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
  attr.route = route;
  xio_ctx_t made{};
  checked(xio_ctx_create(world_, &attr, &made), "xio_ctx_create");
  contexts_[route] = made;
  return made;
}

xio_team_t session::team(int members) {
  const auto at = teams_.find(members);
  if (at != teams_.end()) return at->second;
  std::vector<int> pes(me_ < members ? static_cast<std::size_t>(members) : 0);
  std::iota(pes.begin(), pes.end(), 0);
  checked(xio_team_create(world_, pes.data(), pes.size(), &teams_[members]), "xio_team_create");
  return teams_[members];
}

const std::size_t* session::blocks(std::size_t bytes) {
  const auto n = static_cast<std::size_t>(n_);
  std::vector<std::size_t> all(2 * n, bytes);
  for (std::size_t i = 0; i < n; ++i) all[i] = i * bytes;
  if (blocks_ == nullptr) checked_hip(hipMalloc(&blocks_, all.size() * sizeof all[0]), "room for lists");
  checked_hip(hipMemcpy(blocks_, all.data(), all.size() * sizeof all[0], hipMemcpyHostToDevice), "filling lists");
  return blocks_;
}

work session::blank(xio_route_t route) {
  work w{};
  w.ctx = ctx(route);
  w.me = me_;
  w.peer = (me_ + 1) % n_;
  w.dst = dst;
  w.src = src;
  w.shared = words_;
  w.element = 8;
  w.stride = 1;
  return w;
}

std::vector<double> session::slowest(xio_route_t route, const std::vector<double>& mine) {
  std::vector<double> all = mine;
  all.resize(std::min(all.size(), k_exchanged));
  const std::size_t bytes = all.size() * sizeof(double);
  char* fetched = exchange_ + k_exchanged * sizeof(double);
  checked_hip(hipMemcpy(exchange_, all.data(), bytes, hipMemcpyHostToDevice), "telling the times");
  barrier();
  for (int pe = 0; pe < n_; ++pe) {
    if (pe == me_) continue;
    work w = blank(route);
    w.src = exchange_;
    w.dst = fetched;
    w.bytes = bytes;
    w.peer = pe;
    results.prepare(w, 0, 1);
    launch_fetch(w);
    collect("fetching the times of the others", w);
    std::vector<double> theirs(all.size());
    checked_hip(hipMemcpy(theirs.data(), fetched, bytes, hipMemcpyDeviceToHost), "fetching the times of the others");
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::max(all[i], theirs[i]);
  }
  barrier();
  return all;
}

}  // namespace xio::perf
