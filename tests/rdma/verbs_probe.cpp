// SPDX-License-Identifier: MIT
// The verbs fabric on the RDMA device at hand: two queue pairs talk to each other on it. Writes, reads, atomics, inline
// bytes, immediates, many spans, and a device's completions for wrong keys, ranges and a vanished peer. Every byte is
// checked. Exit 77: no device. tests/vm runs it on the kernel's rxe.
#include <chrono>
#include <cstdio>
#include <cstring>

#include "base/error.hpp"
#include "base/log.hpp"
#include "proxy/keys.hpp"
#include "transport/rdma/verbs/verbs.hpp"

using namespace xio;
using namespace xio::proxy;

namespace {

int failures = 0;
const payload_agent untouched{};  // a device moves the bytes

void check(bool good, const std::string& what) {
  std::printf("%s %s\n", good ? "ok  " : "FAIL", what.c_str());
  std::fflush(stdout);
  if (!good) ++failures;
}

struct immediate {
  std::uint32_t number, value;
  std::uint64_t bytes;
};

// One end: a NIC of its own, memory of its own.
struct side {
  std::vector<immediate> came;
  bool takes = true;
  std::unique_ptr<fabric> f;
  std::vector<unsigned char> memory = std::vector<unsigned char>(4 << 20);
  key_pair keys{};
  std::unique_ptr<executor> e;

  explicit side(const options& o, int pe) {
    auto all = xio::rdma::open_verbs(o, untouched, pe, 0, [this](std::uint32_t n, std::uint32_t v, std::uint64_t b) {
      if (takes) came.push_back({n, v, b});
      return takes;
    });
    f = std::move(all.at(0));
    keys = f->register_memory(memory.data(), memory.size(),
                              local_read | local_write | remote_read | remote_write | remote_atomic);
  }
  std::uint64_t at(std::uint64_t offset) const { return reinterpret_cast<std::uint64_t>(memory.data()) + offset; }
  template <class T>
  T& word(std::uint64_t offset) {
    return *reinterpret_cast<T*>(memory.data() + offset);
  }
};

struct bench {
  options o;
  side a, b;

  explicit bench(const options& opts) : o(opts), a(o, 0), b(o, 1) { connect(); }

  void connect() {
    a.f->connect_peers({a.f->get_address(), b.f->get_address()});
    const device_address ca = a.f->get_queue_address(70, 1), cb = b.f->get_queue_address(71, 0);
    a.e = a.f->connect(70, 1, cb, 71);
    b.e = b.f->connect(71, 0, ca, 70);
  }

  op make(verb what, std::uint64_t mine, std::uint64_t theirs, std::uint32_t bytes) const {
    op p;
    p.what = what;
    p.signalled = true;
    p.bytes = bytes;
    p.remote = b.at(theirs);
    p.remote_key = b.keys.rkey;
    p.span_count = bytes != 0 ? 1 : 0;
    p.spans[0] = {a.at(mine), bytes, a.keys.lkey};
    return p;
  }

  void turn() {
    a.e->advance(1 << 20);
    if (b.e != nullptr) b.e->advance(1 << 20);
    a.f->poll();
    b.f->poll();
  }

  // Carries them all; how many ended well before the first failure, and that.
  std::size_t run(const std::vector<op>& ops, op_error* how, int seconds = 20) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    std::size_t begun = 0, ended = 0;
    *how = {};
    while (ended < ops.size()) {
      while (begun < ops.size() && a.e->begin(ops[begun])) ++begun;
      turn();
      while (ended < begun && a.e->ended(how)) {
        if (*how) return ended;
        ++ended;
      }
      if (std::chrono::steady_clock::now() > until) {
        check(false, fmt::format("in time: {} of {} ended", ended, ops.size()));
        return ended;
      }
    }
    return ended;
  }
  bool does(const op& p) {
    op_error how;
    return run({p}, &how) == 1 && !how;
  }
};

unsigned char pattern(std::size_t i, unsigned seed) {
  return static_cast<unsigned char>((i * 131 + (i >> 8) * 7 + seed) & 0xff);
}

void moves(bench& t) {
  for (const std::uint32_t n : {0u, 1u, 2u, 4u, 8u, 31u, 4096u, 4097u, 65536u, 1u << 20}) {
    for (std::size_t i = 0; i < n; ++i) t.a.memory[i] = pattern(i, n);
    std::memset(t.b.memory.data() + 64, 0xee, n + 64);
    bool good = t.does(t.make(verb::write, 0, 64 + 3, n));
    for (std::size_t i = 0; i < n; ++i) good &= t.b.memory[64 + 3 + i] == pattern(i, n);
    good &= t.b.memory[64 + 2] == 0xee && t.b.memory[64 + 3 + n] == 0xee;
    check(good, fmt::format("write {}", n));
    std::memset(t.a.memory.data() + (2 << 20), 0, n + 1);
    good = t.does(t.make(verb::read, 2 << 20, 64 + 3, n));
    for (std::size_t i = 0; i < n; ++i) good &= t.a.memory[(2 << 20) + i] == pattern(i, n);
    check(good && t.a.memory[(2 << 20) + n] == 0, fmt::format("read {}", n));
  }
}

void inlines(bench& t) {
  bool good = true;
  std::vector<op> ops;
  for (std::uint32_t n = 0; n <= k_max_inline; n += n < 40 ? 1 : 61) {
    op p = t.make(verb::write, 0, 8192 + 1024 * ops.size(), n);
    p.span_count = 0;
    p.is_inline = true;
    p.signalled = false;
    for (std::size_t i = 0; i < n; ++i) p.inlined[i] = pattern(i, n);
    ops.push_back(p);
  }
  std::memset(t.b.memory.data(), 0, 1 << 18);
  op_error how;
  good = t.run(ops, &how) == ops.size();
  for (std::size_t k = 0; k < ops.size(); ++k)
    for (std::size_t i = 0; i < ops[k].bytes; ++i)
      good &= t.b.memory[8192 + 1024 * k + i] == pattern(i, static_cast<unsigned>(ops[k].bytes));
  check(good, fmt::format("{} inline writes of 0 to {} bytes", ops.size(), k_max_inline));
}

void gathers(bench& t) {
  op p = t.make(verb::write, 0, 4096, 0);
  p.span_count = k_max_spans;
  std::uint64_t from = 0;
  for (std::uint32_t i = 0; i < k_max_spans; ++i) {
    const std::uint32_t n = i % 5 == 3 ? 0 : i * 3 + 1;
    p.spans[i] = {t.a.at(from * 2), n, t.a.keys.lkey};
    for (std::uint32_t k = 0; k < n; ++k) t.a.memory[from * 2 + k] = pattern(p.bytes + k, 5);
    p.bytes += n;
    from += n;
  }
  bool good = t.does(p);
  for (std::size_t i = 0; i < p.bytes; ++i) good &= t.b.memory[4096 + i] == pattern(i, 5);
  check(good, fmt::format("{} spans, {} bytes", p.span_count, p.bytes));
}

void atomics(bench& t) {
  op p = t.make(verb::atomic, 128, 256, 8);
  p.change = {true, 8, 5, 0, 0, 0, 0, false};
  t.b.word<std::uint64_t>(256) = 0x1122334455667788;
  check(t.does(p) && t.a.word<std::uint64_t>(128) == 0x1122334455667788 &&
            t.b.word<std::uint64_t>(256) == 0x112233445566778d,
        "fetch-add, old value in this machine's byte order");
  p.change = {false, 8, 99, 0, 0x112233445566778d, ~0ull, ~0ull, false};
  check(t.does(p) && t.a.word<std::uint64_t>(128) == 0x112233445566778d && t.b.word<std::uint64_t>(256) == 99,
        "compare-swap that swaps");
  check(t.does(p) && t.a.word<std::uint64_t>(128) == 99 && t.b.word<std::uint64_t>(256) == 99,
        "compare-swap that does not");
  std::vector<op> many(500, p);
  for (op& m : many) m.change = {true, 8, 1, 0, 0, 0, 0, false}, m.signalled = false;
  op_error how;
  check(t.run(many, &how) == many.size() && t.b.word<std::uint64_t>(256) == 599, "500 fetch-adds");
}

void immediates(bench& t) {
  op p = t.make(verb::write, 0, 512, 100);
  p.has_immediate = true;
  p.immediate = 0x01020304;
  op_error how;
  t.b.takes = false;
  // More than the receives that are posted: the device holds the rest back until somebody takes them.
  std::vector<op> many(80, p);
  for (std::size_t i = 0; i < many.size(); ++i) many[i].immediate += static_cast<std::uint32_t>(i);
  std::size_t begun = 0, ended = 0;
  const auto start = std::chrono::steady_clock::now();
  while (ended < many.size() && std::chrono::steady_clock::now() - start < std::chrono::seconds(20)) {
    while (begun < many.size() && t.a.e->begin(many[begun])) ++begun;
    t.turn();
    while (ended < begun && t.a.e->ended(&how) && !how) ++ended;
    if (std::chrono::steady_clock::now() - start > std::chrono::milliseconds(200)) t.b.takes = true;
  }
  for (int i = 0; i < 1000 && t.b.came.size() < many.size(); ++i) t.turn();
  bool good = ended == many.size() && t.b.came.size() == many.size();
  for (std::size_t i = 0; good && i < many.size(); ++i)
    good = t.b.came[i].number == 71 && t.b.came[i].value == 0x01020304 + i && t.b.came[i].bytes == 100;
  check(good, fmt::format("{} writes with immediate, {} came", ended, t.b.came.size()));
}

void rate(bench& t) {
  op p = t.make(verb::write, 0, 0, 8);
  p.signalled = false;
  op_error how;
  for (const std::size_t n : {200u, 2000u}) {
    const auto start = std::chrono::steady_clock::now();
    const bool good = t.run(std::vector<op>(n, p), &how) == n;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    check(good, fmt::format("{} writes of 8 bytes in {:.3f} s", n, took.count()));
  }
}

// Each on queue pairs of its own: the first failure ends them.
void wrongs(const options& o) {
  struct wrong {
    const char* name;
    void (*spoil)(op&, bench&);
    outcome expected;
  };
  const wrong all[] = {
      {"a wrong rkey", [](op& p, bench&) { p.remote_key ^= 0x5a; }, outcome::remote_access},
      {"a range beyond the peer's", [](op& p, bench& t) { p.remote = t.b.at(t.b.memory.size() - 4); },
       outcome::remote_access},
      {"a wrong lkey", [](op& p, bench&) { p.spans[0].key ^= 0x5a; }, outcome::local_protection},
      {"a local range beyond its memory", [](op& p, bench& t) { p.spans[0].address = t.a.at(t.a.memory.size() - 4); },
       outcome::local_protection},
      {"a misaligned atomic",
       [](op& p, bench&) {
         p.what = verb::atomic;
         p.remote += 4;
         p.spans[0].bytes = 8;
         p.bytes = 8;
         p.change = {true, 8, 1, 0, 0, 0, 0, false};
       },
       outcome::remote_invalid_request},
      {"a masked atomic, which verbs cannot",
       [](op& p, bench&) {
         p.what = verb::atomic;
         p.spans[0].bytes = 8;
         p.bytes = 8;
         p.change = {false, 8, 1, 0, 1, 0xff, 0xff, false};
       },
       outcome::remote_operation},
      {"a peer that is gone",
       [](op&, bench& t) {
         t.b.e.reset();
         t.b.f->forget(71);
       },
       outcome::retry_exceeded},
      {"a key that was taken back", [](op&, bench& t) { t.b.f->unregister_memory(t.b.keys); }, outcome::remote_access},
  };
  for (const wrong& w : all) {
    options quick = o;
    quick.rdma_timeout = 10;
    quick.rdma_retry = 2;
    bench t(quick);
    std::vector<op> ops(5, t.make(verb::write, 0, 64, 64));
    for (op& p : ops) p.signalled = false;
    w.spoil(ops[2], t);
    const bool at_once = w.expected == outcome::retry_exceeded || std::strstr(w.name, "taken") != nullptr;
    t.b.word<std::uint64_t>(64) = 0;
    t.a.word<std::uint64_t>(0) = 77;
    op_error how;
    const std::size_t well = t.run(ops, &how);
    // rxe flushes everything under way when its requester fails, and does not say why.
    const bool flushed = w.expected == outcome::local_protection && how.what == outcome::flushed;
    check(flushed || (how.what == w.expected && well == (at_once ? 0u : 2u)),
          fmt::format("{}: outcome {}, after {} good ones", w.name, static_cast<int>(how.what), well));
    // A write that was flushed may be on its way still, or never come: only a completion promises data.
    if (!at_once && well > 0) check(t.b.word<std::uint64_t>(64) == 77, "  what came before it is there");
    op_error later;
    check(!t.a.e->begin(ops[0]) && (!t.a.e->ended(&later) || later), "  the queue pair takes no more");
  }
}

template <class Body>
void refused(const char* name, const char* part, Body&& body) {
  try {
    body();
    check(false, fmt::format("{}: not refused", name));
  } catch (const error& e) {
    check(std::strstr(e.what(), part) != nullptr, fmt::format("{}: {}", name, e.what()));
  }
}

void refusals(const options& o) {
  const auto open = [](const options& with) { xio::rdma::open_verbs(with, untouched, 0, 0, {}); };
  refused("a device that does not exist", "mlx5_77", [&] {
    options x = o;
    x.hca_list = "mlx5_77";
    open(x);
  });
  refused("a GID index beyond the table", "XIO_RDMA_GID_INDEX=255", [&] {
    options x = o;
    x.rdma_gid_index = 255;
    open(x);
  });
  refused("memory that is not there", "register", [&] {
    side s(o, 0);
    s.f->register_memory(reinterpret_cast<void*>(0x1000), 4096, local_read);
  });
  refused("a peer without RDMA", "PE 1", [&] {
    side s(o, 0);
    s.f->connect_peers({s.f->get_address(), device_address{}});
  });
}

}  // namespace

int main() {
  try {
    const options o = options::from_environment();
    if (const std::string why = xio::rdma::why_no_verbs(o); !why.empty()) {
      std::printf("%s\n", why.c_str());
      return 77;
    }
    log::set_level(log::level::info);
    {
      bench t(o);
      std::printf("%s, messages up to %llu\n", t.a.f->name(), static_cast<unsigned long long>(t.a.f->max_message()));
      moves(t);
      inlines(t);
      gathers(t);
      atomics(t);
      immediates(t);
      rate(t);
    }
    wrongs(o);
    refusals(o);
  } catch (const std::exception& e) {
    check(false, e.what());
  }
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
