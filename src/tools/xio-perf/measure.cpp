// SPDX-License-Identifier: MIT
#include "tools/xio-perf/measure.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/error.hpp"
#include "tools/gpus.hpp"
#include "tools/xio-perf/data.hpp"

namespace xio::perf {
namespace {

using enum test_id;

// Which memory a test changes.
enum class effect { put, get, atomics, nothing };

effect effect_of(test_id id) {
  switch (id) {
    case put_lat:
    case put_staged_lat:
    case p_lat:
    case put_bw:
    case p_bw:
    case put_pingpong:
    case put_signal_pingpong:
    case sdma_copy: return effect::put;
    case get_lat:
    case get_staged_lat:
    case g_lat:
    case get_bw:
    case g_bw: return effect::get;
    case atomic_lat:
    case atomic_bw: return effect::atomics;
    default: return effect::nothing;
  }
}

// By copies, not value by value.
bool moves_blocks(test_id id) {
  return id == put_lat || id == get_lat || id == put_staged_lat || id == get_staged_lat || id == put_bw ||
         id == get_bw || id == put_pingpong || id == put_signal_pingpong || id == sdma_copy;
}
// By blocking calls, whose way may differ from the others'.
bool waits(test_id id) { return id == get_lat || id == put_staged_lat || id == get_staged_lat; }

double us_per_tick() { return 1e3 / static_cast<double>(tools::ticks_per_ms()); }

// The time from the first workgroup's begin to the last one's end.
double us_of(const std::vector<span>& spans) {
  std::uint64_t begin = ~std::uint64_t{0}, end = 0;
  for (const span& s : spans) {
    begin = std::min(begin, s.begin);
    end = std::max(end, s.end);
  }
  return static_cast<double>(end - begin) * us_per_tick();
}

// Samples are ticks of a clock whose rate only the wall clock tells.
double us_per_sample_tick(const span& s) {
  if (s.last == s.first) return us_per_tick();
  return static_cast<double>(s.end - s.begin) * us_per_tick() / static_cast<double>(s.last - s.first);
}

// Far apart, and through all pieces before any comes again.
std::uint64_t scattering(std::uint64_t pieces) {
  std::uint64_t stride = pieces / 8 * 5 + 1;
  while (std::gcd(stride, pieces) != 1) ++stride;
  return stride;
}

// One measurement: prepare, run, check.
class run {
 public:
  run(session& s, const plan& p, std::uint64_t bytes, const machine_shape& m, drive* d)
      : s_(s), p_(p), bytes_(bytes), m_(m), d_(d), name_(fmt::format("{} of {} bytes", p.what->name, bytes)) {}

  result go() {
    prepare();
    out_.route = route();
    const xio_engine_stats_t before = stats();
    s_.barrier();
    switch (p_.what->how) {
      case shape::latency: one_by_one(); break;
      case shape::bandwidth: streams(); break;
      case shape::pingpong: together(); break;
      case shape::collective: collective(); break;
      case shape::host: host_calls(); break;
      case shape::storage: storage(); break;
    }
    s_.barrier();
    check();
    out_.bytes = bytes_;
    out_.us = tools::statistics_of(us_);
    rates();
    // Reads of what a drive has now are none of the test's ops.
    if (const xio_engine_stats_t now = p_.what->how == shape::storage ? stored_by_ : stats(); now.ops != before.ops)
      out_.doorbells =
          static_cast<double>(now.doorbells - before.doorbells) / static_cast<double>(now.ops - before.ops);
    return std::move(out_);
  }

 private:
  std::uint32_t members() const { return p_.members(s_.n_pes()); }
  bool in_team() const { return static_cast<std::uint32_t>(s_.me()) < members(); }
  // A collective leaves so many at a member.
  std::size_t result_bytes() const {
    const test_id id = p_.what->id;
    return id == broadcast || p_.what->reduces() ? bytes_ : bytes_ * members();
  }
  bool sends(int pe) const { return pe == 0 || p_.bidirectional || p_.what->how == shape::pingpong; }
  int writer() const { return (s_.me() + s_.n_pes() - 1) % s_.n_pes(); }
  bool alone() const { return s_.n_pes() == 1; }

  void prepare() {
    s_.ctx(p_.route);  // collective: of PEs that do not measure, too
    if (p_.what->how == shape::storage) return;
    fill_poison(s_.dst, (p_.what->how == shape::collective ? result_bytes() : bytes_) + k_guard);
    if (effect_of(p_.what->id) == effect::atomics) fill_words(s_.dst, bytes_, p_.element);
  }

  // Of the engine that carries the ops, if one does.
  xio_engine_stats_t stats() {
    xio_engine_stats_t now = XIO_ENGINE_STATS_INIT;
    if (d_ != nullptr) return d_->stats();
    const bool rdma = out_.route == "rdma";
    if (p_.what->how != shape::storage && (rdma || out_.route == "sdma"))
      checked(xio_ctx_stats(s_.world(), s_.ctx(p_.route), rdma ? XIO_ROUTE_RDMA : XIO_ROUTE_SDMA, &now),
              "xio_ctx_stats");
    return now;
  }

  work blank() {
    work w = s_.blank(p_.route);
    w.bytes = bytes_;
    w.element = p_.element;
    w.atomic = p_.op;
    w.warm_up = p_.warm_up;
    w.iterations = p_.iterations;
    return w;
  }

  void keep_samples(double calls = 1) {
    const double scale = us_per_sample_tick(s_.results.spans.front());
    for (const std::uint64_t t : s_.results.samples) us_.push_back(static_cast<double>(t) * scale / calls);
  }

  void one_by_one() {
    work w = blank();
    done_ = std::uint64_t{p_.warm_up} + p_.iterations;
    if (!sends(s_.me())) return;
    s_.results.prepare(w, p_.iterations, 1);
    switch (p_.what->id) {
      case put_lat: launch_put_latency(p_.who, p_.threads, w); break;
      case get_lat: launch_get_latency(p_.who, p_.threads, w); break;
      case put_staged_lat: launch_staged_latency(true, w); break;
      case get_staged_lat: launch_staged_latency(false, w); break;
      case p_lat: launch_scalar_latency(false, p_.threads, w); break;
      case g_lat: launch_scalar_latency(true, 1, w); break;
      default: launch_atomic_latency(w);
    }
    s_.collect(name_.c_str(), w);
    keep_samples();
  }

  void launch_stream(const work& w) {
    const dim3 grid(p_.ctas), block(p_.threads);
    switch (p_.what->id) {
      case put_bw:
      case sdma_copy: launch_put_bandwidth(p_.who, grid, block, w); break;
      case get_bw: launch_get_bandwidth(p_.who, grid, block, w); break;
      case p_bw: launch_put_scalar_bandwidth(grid, block, w); break;
      case g_bw: launch_get_scalar_bandwidth(grid, block, w); break;
      default: launch_atomic_bandwidth(grid, block, w);
    }
  }

  void streams() {
    for (std::uint32_t i = 0; i <= p_.repeat; ++i) {
      work w = blank();
      // The first one warms up.
      if (i == 0) w.iterations = std::max(1u, p_.warm_up);
      w.first = done_;
      w.lockstep = p_.lockstep ? 1 : 0;
      done_ += w.iterations;
      if (p_.bidirectional) s_.barrier();
      if (!sends(s_.me())) continue;
      s_.results.prepare(w, 0, p_.ctas);
      launch_stream(w);
      s_.collect(name_.c_str(), w);
      if (i != 0) us_.push_back(us_of(s_.results.spans) / w.iterations);
    }
    if (p_.bidirectional && !alone()) us_ = s_.slowest(p_.route, us_);
  }

  // Flags count on from run to run, so that none has to be cleared.
  std::uint64_t next_base() const {
    static std::uint64_t base = 0;
    const std::uint64_t now = base;
    base += std::uint64_t{p_.warm_up} + p_.iterations + 1024;
    return now;
  }

  // On CPU threads a short call takes no longer than reading the clock.
  std::uint32_t batch() const { return m_.host && bytes_ <= 4096 ? 10 : 1; }

  void collective() {
    team_work w{blank(), {}, batch(), p_.reduction, nullptr, nullptr};
    w.base = next_base();
    w.peer = static_cast<int>((static_cast<std::uint32_t>(s_.me()) + 1) % members());
    if (p_.what->of_team()) {
      w.team = s_.team(static_cast<int>(members()));
      out_.team = members();
    }
    if (p_.what->id == alltoallv) {
      w.offsets = s_.blocks(bytes_);
      w.lengths = w.offsets + s_.n_pes();
    }
    if (!in_team()) return;
    s_.results.prepare(w, p_.iterations, 1);
    launch_collective(p_.what->id, p_.who, p_.threads, w);
    s_.collect(name_.c_str(), w);
    keep_samples(w.batch);
  }

  void host_call(const std::vector<int>& pes) {
    xio_team_t team{};
    xio_ctx_t ctx{};
    void* block = nullptr;
    xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
    attr.route = p_.route;
    switch (p_.what->id) {
      case host_barrier: return s_.barrier();
      case heap_malloc:
        checked(xio_malloc(s_.world(), bytes_, &block), "xio_malloc");
        return checked(xio_free(s_.world(), block), "xio_free");
      case team_create:
        checked(xio_team_create(s_.world(), pes.data(), pes.size(), &team), "xio_team_create");
        return checked(xio_team_destroy(s_.world(), team), "xio_team_destroy");
      default:
        checked(xio_ctx_create(s_.world(), &attr, &ctx), "xio_ctx_create");
        checked(xio_ctx_destroy(s_.world(), ctx), "xio_ctx_destroy");
    }
  }

  void host_calls() {
    std::vector<int> pes(in_team() ? members() : 0);
    std::iota(pes.begin(), pes.end(), 0);
    if (p_.what->of_team()) out_.team = members();
    for (std::uint32_t i = 0; i < p_.warm_up + p_.iterations; ++i) {
      const auto from = std::chrono::steady_clock::now();
      host_call(pes);
      const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - from;
      if (i >= p_.warm_up) us_.push_back(took.count());
    }
  }

  void together() {
    work w = blank();
    w.base = next_base();
    s_.results.prepare(w, p_.iterations, 1);
    switch (p_.what->id) {
      case p_pingpong: launch_flag_pingpong(false, w); break;
      case signal_pingpong: launch_flag_pingpong(true, w); break;
      case packet_pingpong: launch_packet_pingpong(w); break;
      case put_pingpong: launch_put_pingpong(p_.who, p_.threads, w); break;
      default: launch_put_signal_pingpong(p_.who, p_.threads, w);
    }
    s_.collect(name_.c_str(), w);
    keep_samples();
  }

  void storage() {
    const bool write = p_.what->id == nvme_write;
    if (s_.me() != 0) return;
    d_->check_size(bytes_);
    const std::uint32_t groups = p_.groups(m_.wave);
    for (const bool warm : {true, false}) {
      work w = blank();
      w.storage = d_->handle();
      w.stored = stored_bytes(p_, bytes_, m_);
      w.stride = stride();
      w.first = done_;
      if (warm) w.iterations = std::max(1u, p_.warm_up);
      done_ += w.iterations;
      fill_poison(s_.dst, groups * bytes_ + k_guard);
      s_.results.prepare(w, std::size_t{groups} * w.iterations, p_.ctas);
      launch_storage(p_.who, write, dim3(p_.ctas), dim3(p_.threads), w);
      s_.collect(name_.c_str(), w);
    }
    keep_samples();
    all_us_ = us_of(s_.results.spans);
    stored_by_ = stats();
    check_storage(write, groups);
  }

  std::uint64_t pieces() const { return stored_bytes(p_, bytes_, m_) / bytes_; }
  std::uint64_t stride() const { return p_.scattered ? scattering(pieces()) : 1; }

  // The last op of every group, and of writes all that lies where they were.
  void check_storage(bool write, std::uint32_t groups) {
    const auto place = [&](std::uint64_t op) { return op % pieces() * stride() % pieces() * bytes_; };
    if (!write) {
      const auto found = copy_of(s_.dst, groups * bytes_ + k_guard);
      for (std::uint64_t g = 0; g < groups; ++g) {
        const std::uint64_t at = place((done_ - 1) * groups + g);
        const auto there = d_->content(at, bytes_, p_.route);
        if (!std::equal(there.begin(), there.end(), found.begin() + static_cast<std::ptrdiff_t>(g * bytes_)))
          fail(XIO_ERR_STORAGE, "{}: what op {} read is not what lies at byte {} of {}", name_, g, at, d_->name());
      }
      check_guard(found, groups * bytes_, name_.c_str());
      return;
    }
    for (std::uint64_t op = 0; op < std::min(done_ * groups, pieces()); ++op)
      check_pattern(d_->content(place(op), bytes_, p_.route), bytes_, s_.me(), place(op), name_.c_str());
  }

  void check() {
    if (p_.what->how == shape::collective && p_.what->sized && in_team())
      check_collective(copy_of(s_.dst, result_bytes() + k_guard), p_.what->id, p_.reduction, bytes_, s_.me(),
                       static_cast<int>(members()), name_.c_str());
    switch (effect_of(p_.what->id)) {
      case effect::put:
        if (sends(writer())) check_copy(writer());
        break;
      case effect::get:
        if (sends(s_.me())) check_copy((s_.me() + 1) % s_.n_pes());
        break;
      case effect::atomics:
        if (sends(writer())) check_words(s_.dst, bytes_, p_.element, p_.op, done_, name_.c_str());
        break;
      case effect::nothing: break;
    }
  }

  void check_copy(int owner) {
    const auto found = copy_of(s_.dst, bytes_ + k_guard);
    check_pattern(found, bytes_, owner, 0, name_.c_str());
    check_guard(found, bytes_, name_.c_str());
  }

  // Of one call; the last one of an iteration may have less. As the kernel cuts it: whole cache lines for each group.
  std::uint64_t part() const {
    if (p_.what->how != shape::bandwidth) return bytes_;
    const std::uint64_t groups = p_.groups(m_.wave);
    return std::min(bytes_, ((bytes_ + groups - 1) / groups + 127) / 128 * 128);
  }

  // Of one iteration.
  std::uint64_t messages() const {
    const test_id id = p_.what->id;
    if (id == p_lat || id == p_bw || id == g_bw || id == atomic_bw) return bytes_ / p_.element;
    if (p_.what->how != shape::bandwidth) return 1;
    return (bytes_ + part() - 1) / part();
  }

  void rates() {
    if (us_.empty() || p_.what->how == shape::pingpong || p_.what->how == shape::host) return;
    if (p_.what->how == shape::storage) {
      if (out_.us.median > 0) out_.gb_per_s = p_.groups(m_.wave) * static_cast<double>(bytes_) / out_.us.median / 1e3;
      out_.million_per_s = static_cast<double>(us_.size()) / all_us_;
      return;
    }
    if (p_.what->how == shape::collective) {
      if (!p_.what->sized || out_.us.mean <= 0) return;
      // Data as a program sees them, and as links that each member has one of would carry them at the least.
      const double n = members(),
                   all = static_cast<double>(bytes_) * (p_.what->id == broadcast || p_.what->id == reduce ? 1 : n);
      out_.gb_per_s = all / out_.us.mean / 1e3;
      out_.bus_gb_per_s =
          *out_.gb_per_s * (p_.what->id == broadcast ? 1 : (p_.what->id == reduce ? 2 : 1) * (n - 1) / n);
      return;
    }
    const double senders = p_.bidirectional ? s_.n_pes() : 1;
    if (out_.us.median <= 0) return;
    out_.gb_per_s = senders * static_cast<double>(bytes_) / out_.us.median / 1e3;
    out_.million_per_s = senders * static_cast<double>(messages()) / out_.us.median;
  }

  std::string route() {
    if (p_.what->how == shape::storage) return "nvme";
    if (p_.what->how == shape::host && p_.what->id != ctx_create) return "host";
    const xio_ctx_t ctx = s_.ctx(p_.route);
    const int peer = (s_.me() + 1) % s_.n_pes();
    const std::uint64_t asked = moves_blocks(p_.what->id) && !waits(p_.what->id) ? part() : 0;
    const char* name = xio_route_name(s_.world(), ctx, asked, peer);
    const std::string way = name == nullptr ? "" : name;
    // Copy engines are not asked for single words.
    return way == "sdma" && !moves_blocks(p_.what->id) ? "direct" : way;
  }

  session& s_;
  const plan& p_;
  std::uint64_t bytes_;
  const machine_shape& m_;
  drive* d_;
  std::string name_;
  std::vector<double> us_;
  double all_us_ = 0;
  std::uint64_t done_ = 0;                                // iterations so far
  xio_engine_stats_t stored_by_ = XIO_ENGINE_STATS_INIT;  // of the drive, behind the last op of a test
  result out_;
};

}  // namespace

result measure(session& s, const plan& p, std::uint64_t bytes, const machine_shape& m, drive* d) {
  return run(s, p, bytes, m, d).go();
}

}  // namespace xio::perf
