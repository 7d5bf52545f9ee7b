// SPDX-License-Identifier: MIT
// Calls on a stream that move data: what each leaves, by sizes, in poisoned memory.
#pragma once
#include <xio/stream.h>

#include "rig.hpp"

namespace stream_test {

using bytes_t = std::vector<unsigned char>;
constexpr size_t k_most = 300001;  // bytes of a block: several workgroups copy it
constexpr size_t k_guard = 64;

// Everything that the rows share.
struct place {
  const rig::team& t;
  xio_team_t team;
  unsigned char *dst, *src;  // symmetric, room for a block of each PE
  unsigned char* sums;       // behind a block of dst
  size_t* tables;            // of alltoallv
  uint64_t* sig;             // symmetric, zero between rows
  hipStream_t stream;
  xio_status_t* status;  // of the host, which kernels reach
  xio_stream_attr_t attr;

  int next() const { return t.right; }
  int last() const { return t.left; }
  size_t room() const { return static_cast<size_t>(t.n) * k_most + 1024; }
  void sync() const { MUST(hipStreamSynchronize(stream)); }
  // Block `to` of the source of PE `from`.
  static bytes_t block(int from, int to, size_t bytes) { return part(from, static_cast<size_t>(to) * bytes, bytes); }
  static bytes_t part(int from, size_t at, size_t bytes) {
    bytes_t out(bytes);
    for (size_t i = 0; i < bytes; ++i) out[i] = rig::pattern(from, at + i);
    return out;
  }
};

#define GIVE(call, ...) rig::expect_status(call(p.t.world(), p.t.ctx, __VA_ARGS__, p.stream, &p.attr), XIO_OK, #call)
#define GIVE_ALONE(call) rig::expect_status(call(p.t.world(), p.t.ctx, p.stream, &p.attr), XIO_OK, #call)

// --- What calls move ---------------------------------------------------------------------------------

struct row {
  const char* name;
  void (*give)(const place&, size_t bytes);
  bytes_t (*wanted)(const place&, size_t bytes);  // what dst begins with
};

// Of a block that PE `from` gives by alltoallv: another size for each, at most all of n.
inline size_t eighths(size_t n, int from) { return n / 8 * static_cast<size_t>(from + 1); }

inline void give_varied(const place& p, size_t n) {
  std::vector<size_t> all;
  size_t at = 0;
  for (int i = 0; i < p.t.n; at += eighths(n, i++)) all.push_back(at);
  for (int i = 0; i < p.t.n; ++i) all.push_back(eighths(n, i));
  for (int i = 0; i < p.t.n; ++i) all.push_back(n * static_cast<size_t>(i));
  for (int i = 0; i < p.t.n; ++i) all.push_back(eighths(n, p.t.me));
  const auto k = static_cast<size_t>(p.t.n);
  rig::team::write(p.tables, all);
  const size_t* t = p.tables;
  GIVE(xio_alltoallv_on_stream, p.team, p.dst, t, t + k, p.src, t + 2 * k, t + 3 * k);
}

inline bytes_t from_last(const place& p, size_t n) { return place::block(p.last(), 0, n); }
// The bytes one(pe) of all PEs, behind each other.
template <class One>
bytes_t from_each(const place& p, const One& one) {
  bytes_t out;
  for (int from = 0; from < p.t.n; ++from) {
    const bytes_t part = one(from);
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

const row k_rows[] = {
    {"put and barrier_all",
     [](const place& p, size_t n) {
       GIVE(xio_put_on_stream, p.dst, p.src, n, p.next());
       GIVE_ALONE(xio_barrier_all_on_stream);
     },
     from_last},
    {"put, quiet and sync_all",
     [](const place& p, size_t n) {
       GIVE(xio_put_on_stream, p.dst, p.src, n, p.next());
       GIVE_ALONE(xio_quiet_on_stream);
       GIVE_ALONE(xio_sync_all_on_stream);
     },
     from_last},
    {"put and team_barrier",
     [](const place& p, size_t n) {
       GIVE(xio_put_on_stream, p.dst, p.src, n, p.next());
       GIVE(xio_team_barrier_on_stream, p.team);
     },
     from_last},
    {"get", [](const place& p, size_t n) { GIVE(xio_get_on_stream, p.dst, p.src, n, p.next()); },
     [](const place& p, size_t n) { return place::block(p.next(), 0, n); }},
    {"put_signal and signal_take",
     [](const place& p, size_t n) {
       GIVE(xio_put_signal_on_stream, p.dst, p.src, n, p.sig, 3, XIO_SIGNAL_ADD, p.next());
       GIVE(xio_signal_take_on_stream, p.sig, 3);
     },
     from_last},
    {"put, signal_op and signal_wait",
     [](const place& p, size_t n) {
       GIVE(xio_put_on_stream, p.dst, p.src, n, p.next());
       GIVE(xio_signal_op_on_stream, p.sig, 5, XIO_SIGNAL_SET, p.next());
       GIVE(xio_signal_wait_on_stream, p.sig, XIO_CMP_EQ, 5);
       GIVE(xio_signal_take_on_stream, p.sig, 5);
       GIVE(xio_team_sync_on_stream, p.team);
     },
     from_last},
    {"alltoall", [](const place& p, size_t n) { GIVE(xio_alltoall_on_stream, p.team, p.dst, p.src, n); },
     [](const place& p, size_t n) { return from_each(p, [&](int from) { return place::block(from, p.t.me, n); }); }},
    {"fcollect", [](const place& p, size_t n) { GIVE(xio_fcollect_on_stream, p.team, p.dst, p.src, n); },
     [](const place& p, size_t n) { return from_each(p, [&](int from) { return place::block(from, 0, n); }); }},
    {"collect",
     [](const place& p, size_t n) {
       GIVE(xio_collect_on_stream, p.team, p.dst, p.src, n / 8 * static_cast<size_t>(p.t.me));
     },
     [](const place& p, size_t n) {
       return from_each(p, [&](int from) { return place::block(from, 0, n / 8 * static_cast<size_t>(from)); });
     }},
    {"alltoallv", give_varied,
     [](const place& p, size_t n) {
       return from_each(p,
                        [&](int from) { return place::part(from, static_cast<size_t>(p.t.me) * n, eighths(n, from)); });
     }},
    {"broadcast", [](const place& p, size_t n) { GIVE(xio_broadcast_on_stream, p.team, p.dst, p.src, n, p.t.n - 1); },
     [](const place& p, size_t n) { return p.t.me == p.t.n - 1 ? bytes_t{} : place::block(p.t.n - 1, 0, n); }},
};

// The whole of dst, so that a byte beside its place is seen, and the status words.
inline void expect_moved(const place& p, const row& r, size_t bytes) {
  rig::team::write(p.dst, bytes_t(p.room(), rig::k_poison));
  p.t.barrier();
  *p.status = XIO_PENDING;
  r.give(p, bytes);
  p.sync();
  const std::string name = std::string(r.name) + " of " + std::to_string(bytes);
  rig::expect_status(*static_cast<volatile xio_status_t*>(p.status), XIO_OK, name.c_str());
  bytes_t wanted = r.wanted(p, bytes);
  wanted.resize(p.room(), rig::k_poison);
  rig::expect_same(rig::team::read(p.dst, p.room()), wanted, name.c_str());
  p.t.barrier();
  if (!rig::expect(rig::team::read(p.sig, 1)[0] == 0, "%s: the signal was not taken", name.c_str()))
    rig::team::write(p.sig, std::vector<uint64_t>(1));
  p.t.barrier();
}

inline void move_all(place& p) {
  for (const row& r : k_rows)
    for (const size_t bytes : {size_t{0}, size_t{8}, size_t{1001}, k_most}) expect_moved(p, r, bytes);
  // Members may differ in this.
  p.attr.workgroups = p.t.me % 2 == 0 ? 3 : 1;
  for (const row& r : k_rows)
    for (const size_t bytes : {size_t{1001}, k_most}) expect_moved(p, r, bytes);
  p.attr.workgroups = 0;
}

// --- Reduces -----------------------------------------------------------------------------------------

// Element i of a PE, one of -1 to 2: every result is exact in every type of floats.
inline int element(int pe, size_t i) { return static_cast<int>((static_cast<size_t>(pe) * 3 + i) % 4) - 1; }

inline bool is_float(int type) { return type >= XIO_HALF; }
inline size_t size_of(int type) {
  return size_t{1} << (type < XIO_HALF ? type / 2 : type < XIO_FLOAT ? 1 : type - XIO_HALF);
}

// The bits of a small whole number in a type of floats, by the definition of the format.
inline uint64_t float_bits(int type, int64_t v) {
  const int fraction = type == XIO_HALF ? 10 : type == XIO_BFLOAT16 ? 7 : type == XIO_FLOAT ? 23 : 52;
  const int exponent = type == XIO_HALF ? 5 : type == XIO_DOUBLE ? 11 : 8, bias = (1 << (exponent - 1)) - 1;
  const uint64_t sign = uint64_t{v < 0} << (fraction + exponent), a = static_cast<uint64_t>(v < 0 ? -v : v);
  int log2 = 0;
  while (a >> (log2 + 1) != 0) ++log2;
  return a == 0
             ? 0
             : sign | static_cast<uint64_t>(bias + log2) << fraction | (a - (uint64_t{1} << log2)) << (fraction - log2);
}

// A number as that type has it: its low bits, with a sign or without.
inline int64_t as_type(int type, int64_t v) {
  if (is_float(type) || size_of(type) == 8) return v;
  const int unused = 64 - static_cast<int>(size_of(type)) * 8;
  const uint64_t up = static_cast<uint64_t>(v) << unused;
  return type % 2 == 0 ? static_cast<int64_t>(up) >> unused : static_cast<int64_t>(up >> unused);
}

inline int64_t combined(int op, int type, int64_t a, int64_t b) {
  const bool wide = type == XIO_UINT64 && (a < 0 || b < 0);  // as unsigned numbers
  const bool less = wide ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
  switch (op) {
    case XIO_REDUCE_SUM: return as_type(type, a + b);
    case XIO_REDUCE_PROD: return as_type(type, a * b);
    case XIO_REDUCE_MIN: return less ? a : b;
    case XIO_REDUCE_MAX: return less ? b : a;
    case XIO_REDUCE_AND: return a & b;
    case XIO_REDUCE_OR: return a | b;
    default: return a ^ b;
  }
}

inline void put_number(bytes_t& to, int type, int64_t v) {
  const uint64_t bits = is_float(type) ? float_bits(type, v) : static_cast<uint64_t>(v);
  for (size_t k = 0; k < size_of(type); ++k) to.push_back(static_cast<unsigned char>(bits >> (8 * k)));
}

// How a reduce is called: into another place, in place, or with a part of the result for each PE.
enum reduce_form { apart, in_place, scattered };

// Element i of the result, by the definition.
inline void put_result(const place& p, bytes_t& to, int op, int type, size_t i) {
  int64_t all = as_type(type, element(0, i));
  int negative = element(0, i) < 0;
  for (int pe = 1; pe < p.t.n; ++pe) {
    all = combined(op, type, all, as_type(type, element(pe, i)));
    negative += element(pe, i) < 0;
  }
  put_number(to, type, all);
  // A product of floats may be -0, which these numbers do not say.
  if (is_float(type) && all == 0 && op == XIO_REDUCE_PROD && negative % 2 != 0) to.back() = 0x80;
}

inline void expect_reduced(const place& p, int op, int type, size_t count, reduce_form form) {
  const size_t parts = form == scattered ? static_cast<size_t>(p.t.n) : 1;
  const size_t first = form == scattered ? count * static_cast<size_t>(p.t.me) : 0;
  bytes_t mine, wanted;
  for (size_t i = 0; i < count * parts; ++i) put_number(mine, type, as_type(type, element(p.t.me, i)));
  for (size_t i = 0; i < count; ++i) put_result(p, wanted, op, type, first + i);
  unsigned char* src = form == in_place ? p.dst : p.sums;
  wanted.resize(wanted.size() + k_guard, rig::k_poison);
  rig::team::write(p.dst, bytes_t(wanted.size(), rig::k_poison));
  rig::team::write(src, mine);
  p.t.barrier();
  const auto how = static_cast<xio_reduction_t>(op);
  const auto of = static_cast<xio_type_t>(type);
  if (form == scattered)
    GIVE(xio_reduce_scatter_on_stream, p.team, how, of, p.dst, src, count);
  else
    GIVE(xio_reduce_on_stream, p.team, how, of, p.dst, src, count);
  p.sync();
  const std::string name = "reduce " + std::to_string(op) + " of " + std::to_string(count) + " of type " +
                           std::to_string(type) + ", form " + std::to_string(form);
  rig::expect_same(rig::team::read(p.dst, wanted.size()), wanted, name.c_str());
  p.t.barrier();
}

inline void reduce_all(place& p) {
  for (int type = XIO_INT8; type <= XIO_DOUBLE; ++type)
    for (int op = XIO_REDUCE_SUM; op <= (is_float(type) ? XIO_REDUCE_MAX : XIO_REDUCE_XOR); ++op)
      expect_reduced(p, op, type, 21, static_cast<reduce_form>(op % 3));
  // Parts, and what goes in shares or rounds; the last not in whole words.
  for (const int type : {XIO_UINT8, XIO_BFLOAT16, XIO_FLOAT, XIO_INT64})
    for (const reduce_form form : {apart, in_place, scattered})
      for (const size_t bytes : {size_t{6000}, form == scattered ? k_most / 8 : k_most - 1})
        for (const uint32_t workgroups : {0u, p.t.me % 2 == 0 ? 5u : 1u}) {
          p.attr.workgroups = workgroups;
          expect_reduced(p, XIO_REDUCE_SUM, type, bytes / size_of(type) - 1, form);
        }
  p.attr.workgroups = 0;
}

// --- Storage -----------------------------------------------------------------------------------------

inline void store_and_read(const place& p) {
  char name[] = "/tmp/xio-stream-XXXXXX";
  const int fd = mkstemp(name);
  if (fd < 0) rig::give_up("mkstemp", "no file in /tmp");
  close(fd);
  xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
  attr.bytes = 1 << 20;
  xio_storage_t s{};
  const xio_status_t opened = xio_storage_open(p.t.world(), (std::string("file:") + name).c_str(), &attr, &s);
  if (opened == XIO_ERR_UNSUPPORTED) unlink(name);
  if (opened == XIO_ERR_UNSUPPORTED) return;
  MUST(opened);
  constexpr size_t k_bytes = (64 << 10) - 5;
  rig::team::write(p.dst, bytes_t(k_bytes + k_guard, rig::k_poison));
  GIVE(xio_write_on_stream, p.src, s, 4097, k_bytes);
  GIVE(xio_storage_sync_on_stream, s);
  GIVE(xio_read_on_stream, p.dst, s, 4097, k_bytes);
  p.sync();
  rig::expect_status(*static_cast<volatile xio_status_t*>(p.status), XIO_OK, "storage");
  bytes_t wanted = place::block(p.t.me, 0, k_bytes);
  wanted.resize(k_bytes + k_guard, rig::k_poison);
  rig::expect_same(rig::team::read(p.dst, wanted.size()), wanted, "what was written and read");
  uint64_t own[64] = {};
  xio_world_t* w = p.t.world();
  const xio_ctx_t& c = p.t.ctx;
  rig::expect_status(xio_read_on_stream(w, c, p.dst, s, (1 << 20) - 1, 2, p.stream, nullptr), XIO_ERR_ARG,
                     "over the end");
  rig::expect_status(xio_write_on_stream(w, c, p.src, s, 1 << 20, 512, p.stream, nullptr), XIO_ERR_ARG, "the end");
  rig::expect_status(xio_read_on_stream(w, c, own, s, 0, 512, p.stream, nullptr), XIO_ERR_NOT_REGISTERED, "own memory");
  MUST(xio_storage_close(w, s));
  unlink(name);
  rig::expect_status(xio_storage_sync_on_stream(w, c, s, p.stream, nullptr), XIO_ERR_STATE, "a closed storage");
}

}  // namespace stream_test
