// SPDX-License-Identifier: MIT
// Calls on a stream (xio/stream.h): what each moves, by sizes, into poisoned memory; what the host's books refuse; and
// failures, of which the first ends all later calls; replays of graphs. `stream dead`: the last PE is not there any
// more. `stream dies`: it ends in the middle of replays.
#include <unistd.h>
#include <xio/host.h>
#include <xio/stream.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "rig.hpp"

namespace {

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

  int next() const { return (t.me + 1) % t.n; }
  int last() const { return (t.me + t.n - 1) % t.n; }
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
size_t eighths(size_t n, int from) { return n / 8 * static_cast<size_t>(from + 1); }

void give_varied(const place& p, size_t n) {
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

const row k_rows[] = {
    {"put and barrier_all",
     [](const place& p, size_t n) {
       GIVE(xio_put_on_stream, p.dst, p.src, n, p.next());
       GIVE_ALONE(xio_barrier_all_on_stream);
     },
     [](const place& p, size_t n) { return place::block(p.last(), 0, n); }},
    {"put, quiet and sync_all",
     [](const place& p, size_t n) {
       GIVE(xio_put_on_stream, p.dst, p.src, n, p.next());
       GIVE_ALONE(xio_quiet_on_stream);
       GIVE_ALONE(xio_sync_all_on_stream);
     },
     [](const place& p, size_t n) { return place::block(p.last(), 0, n); }},
    {"put and team_barrier",
     [](const place& p, size_t n) {
       GIVE(xio_put_on_stream, p.dst, p.src, n, p.next());
       GIVE(xio_team_barrier_on_stream, p.team);
     },
     [](const place& p, size_t n) { return place::block(p.last(), 0, n); }},
    {"get", [](const place& p, size_t n) { GIVE(xio_get_on_stream, p.dst, p.src, n, p.next()); },
     [](const place& p, size_t n) { return place::block(p.next(), 0, n); }},
    {"put_signal and signal_take",
     [](const place& p, size_t n) {
       GIVE(xio_put_signal_on_stream, p.dst, p.src, n, p.sig, 3, XIO_SIGNAL_ADD, p.next());
       GIVE(xio_signal_take_on_stream, p.sig, 3);
     },
     [](const place& p, size_t n) { return place::block(p.last(), 0, n); }},
    {"put, signal_op and signal_wait",
     [](const place& p, size_t n) {
       GIVE(xio_put_on_stream, p.dst, p.src, n, p.next());
       GIVE(xio_signal_op_on_stream, p.sig, 5, XIO_SIGNAL_SET, p.next());
       GIVE(xio_signal_wait_on_stream, p.sig, XIO_CMP_EQ, 5);
       GIVE(xio_signal_take_on_stream, p.sig, 5);
       GIVE(xio_team_sync_on_stream, p.team);
     },
     [](const place& p, size_t n) { return place::block(p.last(), 0, n); }},
    {"alltoall", [](const place& p, size_t n) { GIVE(xio_alltoall_on_stream, p.team, p.dst, p.src, n); },
     [](const place& p, size_t n) {
       bytes_t out;
       for (int from = 0; from < p.t.n; ++from) {
         const bytes_t one = place::block(from, p.t.me, n);
         out.insert(out.end(), one.begin(), one.end());
       }
       return out;
     }},
    {"fcollect", [](const place& p, size_t n) { GIVE(xio_fcollect_on_stream, p.team, p.dst, p.src, n); },
     [](const place& p, size_t n) {
       bytes_t out;
       for (int from = 0; from < p.t.n; ++from) {
         const bytes_t one = place::block(from, 0, n);
         out.insert(out.end(), one.begin(), one.end());
       }
       return out;
     }},
    {"collect",
     [](const place& p, size_t n) {
       GIVE(xio_collect_on_stream, p.team, p.dst, p.src, n / 8 * static_cast<size_t>(p.t.me));
     },
     [](const place& p, size_t n) {
       bytes_t out;
       for (int from = 0; from < p.t.n; ++from) {
         const bytes_t one = place::block(from, 0, n / 8 * static_cast<size_t>(from));
         out.insert(out.end(), one.begin(), one.end());
       }
       return out;
     }},
    {"alltoallv", give_varied,
     [](const place& p, size_t n) {
       bytes_t out;
       for (int from = 0; from < p.t.n; ++from) {
         const bytes_t one = place::part(from, static_cast<size_t>(p.t.me) * n, eighths(n, from));
         out.insert(out.end(), one.begin(), one.end());
       }
       return out;
     }},
    {"broadcast", [](const place& p, size_t n) { GIVE(xio_broadcast_on_stream, p.team, p.dst, p.src, n, p.t.n - 1); },
     [](const place& p, size_t n) { return p.t.me == p.t.n - 1 ? bytes_t{} : place::block(p.t.n - 1, 0, n); }},
};

// The whole of dst, so that a byte beside its place is seen, and the status words.
void expect_moved(const place& p, const row& r, size_t bytes) {
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

void move_all(place& p) {
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
int element(int pe, size_t i) { return static_cast<int>((static_cast<size_t>(pe) * 3 + i) % 4) - 1; }

bool is_float(int type) { return type >= XIO_HALF; }
size_t size_of(int type) { return size_t{1} << (type < XIO_HALF ? type / 2 : type < XIO_FLOAT ? 1 : type - XIO_HALF); }

// The bits of a small whole number in a type of floats, by the definition of the format.
uint64_t float_bits(int type, int64_t v) {
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
int64_t as_type(int type, int64_t v) {
  if (is_float(type) || size_of(type) == 8) return v;
  const int unused = 64 - static_cast<int>(size_of(type)) * 8;
  const uint64_t up = static_cast<uint64_t>(v) << unused;
  return type % 2 == 0 ? static_cast<int64_t>(up) >> unused : static_cast<int64_t>(up >> unused);
}

int64_t combined(int op, int type, int64_t a, int64_t b) {
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

void put_number(bytes_t& to, int type, int64_t v) {
  const uint64_t bits = is_float(type) ? float_bits(type, v) : static_cast<uint64_t>(v);
  for (size_t k = 0; k < size_of(type); ++k) to.push_back(static_cast<unsigned char>(bits >> (8 * k)));
}

// How a reduce is called: into another place, in place, or with a part of the result for each PE.
enum reduce_form { apart, in_place, scattered };

// Element i of the result, by the definition.
void put_result(const place& p, bytes_t& to, int op, int type, size_t i) {
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

void expect_reduced(const place& p, int op, int type, size_t count, reduce_form form) {
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

void reduce_all(place& p) {
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

void store_and_read(const place& p) {
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
  constexpr size_t k_bytes = 64 << 10;
  rig::team::write(p.dst, bytes_t(k_bytes + k_guard, rig::k_poison));
  GIVE(xio_write_on_stream, p.src, s, 4096, k_bytes);
  GIVE(xio_storage_sync_on_stream, s);
  GIVE(xio_read_on_stream, p.dst, s, 4096, k_bytes);
  p.sync();
  rig::expect_status(*static_cast<volatile xio_status_t*>(p.status), XIO_OK, "storage");
  bytes_t wanted = place::block(p.t.me, 0, k_bytes);
  wanted.resize(k_bytes + k_guard, rig::k_poison);
  rig::expect_same(rig::team::read(p.dst, wanted.size()), wanted, "what was written and read");
  uint64_t own[64] = {};
  xio_world_t* w = p.t.world();
  const xio_ctx_t& c = p.t.ctx;
  rig::expect_status(xio_read_on_stream(w, c, p.dst, s, 100, 512, p.stream, nullptr), XIO_ERR_ARG, "in a block");
  rig::expect_status(xio_write_on_stream(w, c, p.src, s, 1 << 20, 512, p.stream, nullptr), XIO_ERR_ARG, "the end");
  rig::expect_status(xio_read_on_stream(w, c, own, s, 0, 512, p.stream, nullptr), XIO_ERR_NOT_REGISTERED, "own memory");
  MUST(xio_storage_close(w, s));
  unlink(name);
  rig::expect_status(xio_storage_sync_on_stream(w, c, s, p.stream, nullptr), XIO_ERR_STATE, "a closed storage");
}

// --- What is refused ---------------------------------------------------------------------------------

struct refusal {
  xio_status_t status;
  const char* part;  // of the sentence
  std::function<xio_status_t()> call;
};

bool on_host() {
#if defined(XIO_ON_HOST)
  return true;
#else
  return false;
#endif
}

// A stream of another GPU, where there is one. HIP before 6 does not say whose a stream is.
void refuse_elsewhere(const place& p) {
  int device = 0, devices = 0;
  MUST(hipGetDevice(&device));
  MUST(hipGetDeviceCount(&devices));
#if defined(XIO_ON_HIP)
  if (HIP_VERSION_MAJOR < 6) return;
#endif
  if (devices < 2) return;
  hipStream_t stream;
  MUST(hipSetDevice((device + 1) % devices));
  MUST(hipStreamCreate(&stream));
  rig::expect_status(xio_sync_all_on_stream(p.t.world(), p.t.ctx, stream, nullptr), XIO_ERR_ARG,
                     "another GPU's stream");
  rig::expect(std::strstr(xio_last_error(), "this PE's is") != nullptr, "'%s'", xio_last_error());
  MUST(hipStreamDestroy(stream));
  MUST(hipSetDevice(device));
}

void refuse_all(const place& p) {
  xio_world_t* w = p.t.world();
  xio_ctx_t other = p.t.ctx;
  other.view = nullptr;
  xio_ctx_t gone{}, none{};
  MUST(xio_ctx_create(w, nullptr, &gone));
  MUST(xio_ctx_destroy(w, gone));
  xio_team_t changed = p.team;
  ++changed.n_pes;
  xio_stream_attr_t flags = XIO_STREAM_ATTR_INIT, many = XIO_STREAM_ATTR_INIT, unsized{};
  flags.flags = 1;
  many.workgroups = 5000;
  hipStream_t ended;
  MUST(hipStreamCreate(&ended));
  MUST(hipStreamDestroy(ended));
  const xio_ctx_t& c = p.t.ctx;
  const xio_stream_t s = p.stream;
  uint64_t own[16] = {};
  const size_t huge = SIZE_MAX / 2;
  const std::vector<refusal> table = {
      {XIO_ERR_ARG, "world is null", [&] { return xio_put_on_stream(nullptr, c, p.dst, p.src, 8, 0, s, nullptr); }},
      {XIO_ERR_ARG, "the ctx is empty", [&] { return xio_put_on_stream(w, none, p.dst, p.src, 8, 0, s, nullptr); }},
      {XIO_ERR_STATE, "was destroyed already", [&] { return xio_quiet_on_stream(w, gone, s, nullptr); }},
      {XIO_ERR_ARG, "give that value, unchanged", [&] { return xio_quiet_on_stream(w, other, s, nullptr); }},
      {XIO_ERR_PE, "not one of this world's",
       [&] { return xio_put_on_stream(w, c, p.dst, p.src, 8, p.t.n, s, nullptr); }},
      {XIO_ERR_PE, "PE -1 is not", [&] { return xio_get_on_stream(w, c, p.dst, p.src, 8, -1, s, nullptr); }},
      {XIO_ERR_ARG, "dst is null", [&] { return xio_put_on_stream(w, c, nullptr, p.src, 8, 0, s, nullptr); }},
      {XIO_ERR_ARG, "src is null", [&] { return xio_put_on_stream(w, c, p.dst, nullptr, 8, 0, s, nullptr); }},
      {XIO_ERR_NOT_SYMMETRIC, "dst", [&] { return xio_put_on_stream(w, c, own, p.src, 8, 0, s, nullptr); }},
      {XIO_ERR_NOT_SYMMETRIC, "src", [&] { return xio_get_on_stream(w, c, p.dst, own, 8, 0, s, nullptr); }},
      {XIO_ERR_NOT_SYMMETRIC, "XIO_HEAP_SIZE",
       [&] { return xio_put_on_stream(w, c, p.dst, p.src, huge, 0, s, nullptr); }},
      {XIO_ERR_ARG, "8-byte aligned",
       [&] {
         return xio_signal_wait_on_stream(w, c, reinterpret_cast<uint64_t*>(p.dst + 4), XIO_CMP_EQ, 0, s, nullptr);
       }},
      {XIO_ERR_NOT_SYMMETRIC, "sig", [&] { return xio_signal_take_on_stream(w, c, own, 1, s, nullptr); }},
      {XIO_ERR_ARG, "op is 7",
       [&] { return xio_signal_op_on_stream(w, c, p.sig, 1, static_cast<xio_signal_op_t>(7), 0, s, nullptr); }},
      {XIO_ERR_ARG, "cmp is 6",
       [&] { return xio_signal_wait_on_stream(w, c, p.sig, static_cast<xio_cmp_t>(6), 0, s, nullptr); }},
      {XIO_ERR_STATE, "the team is empty", [&] { return xio_team_sync_on_stream(w, c, xio_team_t{}, s, nullptr); }},
      {XIO_ERR_ARG, "the team is not as", [&] { return xio_team_barrier_on_stream(w, c, changed, s, nullptr); }},
      {XIO_ERR_ARG, "more than a size can say",
       [&] { return xio_alltoall_on_stream(w, c, p.team, p.dst, p.src, huge + 1, s, nullptr); }},
      {XIO_ERR_ARG, "root is",
       [&] { return xio_broadcast_on_stream(w, c, p.team, p.dst, p.src, 8, p.t.n, s, nullptr); }},
      {XIO_ERR_ARG, "more than a size can say",
       [&] {
         return xio_reduce_on_stream(w, c, p.team, XIO_REDUCE_SUM, XIO_DOUBLE, p.dst, p.src, SIZE_MAX / 4, s, nullptr);
       }},
      {XIO_ERR_ARG, "for integers",
       [&] { return xio_reduce_on_stream(w, c, p.team, XIO_REDUCE_XOR, XIO_FLOAT, p.dst, p.src, 1, s, nullptr); }},
      {XIO_ERR_ARG, "type is 12",
       [&] {
         return xio_reduce_on_stream(w, c, p.team, XIO_REDUCE_SUM, static_cast<xio_type_t>(12), p.dst, p.src, 1, s,
                                     nullptr);
       }},
      {XIO_ERR_CONFIG, "xio_stream_attr_t.size", [&] { return xio_quiet_on_stream(w, c, s, &unsized); }},
      {XIO_ERR_CONFIG, "flags", [&] { return xio_quiet_on_stream(w, c, s, &flags); }},
      {XIO_ERR_CONFIG, "at most 1024", [&] { return xio_quiet_on_stream(w, c, s, &many); }},
      {XIO_ERR_ARG, "first is null", [&] { return xio_ctx_failed(w, c, nullptr); }},
  };
  for (const refusal& r : table) {
    rig::expect_status(r.call(), r.status, r.part);
    rig::expect(std::strstr(xio_last_error(), r.part) != nullptr, "'%s' has no '%s'", xio_last_error(), r.part);
  }
  refuse_elsewhere(p);
  // HIP and CUDA follow such a pointer.
  if (on_host())
    rig::expect_status(xio_quiet_on_stream(w, c, ended, nullptr), XIO_ERR_IO, "a stream that was destroyed");
  // On the host platform kernels reach all memory.
  if (p.t.route != "direct" || !on_host())
    rig::expect_status(xio_put_on_stream(w, c, p.dst, own, 8, p.next(), s, nullptr), XIO_ERR_NOT_REGISTERED,
                       "a source that neither kernels nor engines reach");
  p.sync();
}

// --- Failures ----------------------------------------------------------------------------------------

template <class Body>
double seconds_of(Body&& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void expect_first(const place& p, xio_status_t wanted, const char* what) {
  xio_status_t first = XIO_PENDING;
  MUST(xio_ctx_failed(p.t.world(), p.t.ctx, &first));
  rig::expect_status(first, wanted, what);
}

// One call waits in vain, and 99 others end with it: well before two deadlines. Or earlier, where a NIC reports why.
void fail_once(place& p, const char* what, bool has_nic, const std::function<void()>& give) {
  p.attr.timeout_ms = 400;
  const double took = seconds_of([&] {
    for (int i = 0; i < 100; ++i) give();
    p.sync();
  });
  p.attr.timeout_ms = 0;
  const xio_status_t found = *static_cast<volatile xio_status_t*>(p.status);
  const xio_status_t wanted = has_nic && found == XIO_ERR_TRANSPORT ? found : XIO_ERR_TIMEOUT;
  rig::expect(took < 5 && (took > 0.3 || found == XIO_ERR_TRANSPORT), "%s: 100 calls took %.2f s", what, took);
  rig::expect_status(found, wanted, what);
  expect_first(p, wanted, what);
  xio_error_info_t info = XIO_ERROR_INFO_INIT;
  MUST(xio_ctx_error(p.t.world(), p.t.ctx, &info));
  rig::expect(info.status == wanted && info.sentence[0] != 0, "%s: xio_ctx_error has '%s'", what, info.sentence);
}

void fail_all(place& p) {
  expect_first(p, XIO_OK, "nothing");
  fail_once(p, "a signal that nobody sends", false, [&] { GIVE(xio_signal_wait_on_stream, p.sig, XIO_CMP_EQ, 77); });
  // Another thread sees it, and clears it.
  std::thread([&] {
    expect_first(p, XIO_ERR_TIMEOUT, "another thread");
    MUST(xio_ctx_clear(p.t.world(), p.t.ctx));
  }).join();
  expect_first(p, XIO_OK, "after xio_ctx_clear");
  xio_error_info_t info = XIO_ERROR_INFO_INIT;
  MUST(xio_ctx_error(p.t.world(), p.t.ctx, &info));
  rig::expect_status(info.status, XIO_OK, "xio_ctx_error after xio_ctx_clear");
  p.t.barrier();
  expect_moved(p, k_rows[0], 1001);
}

// --- Threads -----------------------------------------------------------------------------------------

// Each thread has a stream and a part of dst, and one of them makes and ends contexts meanwhile.
void give_by_threads(const place& p) {
  constexpr size_t k_threads = 4, k_puts = 40, k_bytes = 200;
  rig::team::write(p.dst, bytes_t(p.room(), rig::k_poison));
  p.t.barrier();
  std::vector<std::thread> threads;
  std::vector<int> wrong(k_threads);
  int device = 0;
  MUST(hipGetDevice(&device));
  for (size_t k = 0; k < k_threads; ++k)
    threads.emplace_back([&, k] {
      hipStream_t own;
      MUST(hipSetDevice(device));
      MUST(hipStreamCreateWithFlags(&own, hipStreamNonBlocking));
      for (size_t i = 0; i < k_puts; ++i) {
        const size_t at = (k * k_puts + i) * k_bytes;
        wrong[k] += xio_put_on_stream(p.t.world(), p.t.ctx, p.dst + at, p.src + at, k_bytes, p.next(), own, nullptr);
        wrong[k] += xio_put_on_stream(p.t.world(), p.t.ctx, nullptr, p.src, 8, 0, own, nullptr) != XIO_ERR_ARG;
      }
      wrong[k] += xio_quiet_on_stream(p.t.world(), p.t.ctx, own, nullptr);
      MUST(hipStreamSynchronize(own));
      MUST(hipStreamDestroy(own));
    });
  for (int i = 0; i < 3; ++i) {
    xio_ctx_t other;
    MUST(xio_ctx_create(p.t.world(), nullptr, &other));
    MUST(xio_ctx_destroy(p.t.world(), other));
  }
  for (std::thread& one : threads) one.join();
  for (const int w : wrong) rig::expect(w == 0, "a thread's puts: %d", w);
  p.t.barrier();
  bytes_t wanted = place::block(p.last(), 0, k_threads * k_puts * k_bytes);
  wanted.resize(p.room(), rig::k_poison);
  rig::expect_same(rig::team::read(p.dst, p.room()), wanted, "puts of four threads");
}

// --- Words that kernels get --------------------------------------------------------------------------

__global__ void barrier_by_words(const xio_ctx_t* ctx, const xio_team_t* team, int* status) {
  const xio_ctx_t c = *ctx;
  const xio_team_t t = *team;
  *status = xio_team_my_pe(t) == xio_my_pe(c) ? xio_team_barrier(c, t) : XIO_ERR_INTERNAL;
}

void pass_words(const place& p) {
  const xio_ctx_t* ctx = nullptr;
  const xio_team_t* team = nullptr;
  MUST(xio_ctx_device(p.t.world(), p.t.ctx, &ctx));
  MUST(xio_team_device(p.t.world(), p.team, &team));
  const rig::device_array<int> status(1);
  RUN(barrier_by_words, 1, 1, ctx, team, status.data());
  rig::expect_status(static_cast<xio_status_t>(status.get()[0]), XIO_OK, "a ctx and a team as words");
  rig::expect_status(xio_team_device(p.t.world(), xio_team_t{}, &team), XIO_ERR_STATE, "the empty team as a word");
}

// --- Calls of the host -------------------------------------------------------------------------------

#define BY_HOST(call, ...) rig::expect_status(call(p.t.world(), p.t.ctx, __VA_ARGS__), XIO_OK, #call)

// Each PE changes a word of the next PE, which nobody else changes.
void change_words(const place& p) {
  uint64_t* const word = p.sig;
  const int pe = p.next();
  uint64_t old = 0;
  const auto expect_old = [&](uint64_t wanted, const char* what) {
    rig::expect(old == wanted, "%s: the word was %llu", what, static_cast<unsigned long long>(old));
  };
  BY_HOST(xio_host_atomic_set, word, 5, pe);
  BY_HOST(xio_host_atomic_fetch_add, word, 3, pe, &old);
  expect_old(5, "fetch_add");
  BY_HOST(xio_host_atomic_swap, word, uint64_t{1} << 40, pe, &old);
  expect_old(8, "swap");
  BY_HOST(xio_host_atomic_compare_swap, word, uint64_t{1} << 40, 7, pe, &old);
  expect_old(uint64_t{1} << 40, "compare_swap");
  BY_HOST(xio_host_atomic_compare_swap, word, 8, 9, pe, &old);
  expect_old(7, "compare_swap of another value");
  BY_HOST(xio_host_atomic_fetch, word, pe, &old);
  expect_old(7, "fetch");
  p.t.barrier();
  BY_HOST(xio_host_signal_wait, word, XIO_CMP_EQ, 7, 0);
  p.t.barrier();
  BY_HOST(xio_host_atomic_set, word, 0, pe);
  p.t.barrier();
  // Threads beside each other, each in a stream of its own.
  constexpr int k_threads = 4, k_adds = 20;
  std::vector<std::thread> threads;
  std::vector<int> wrong(k_threads);
  for (int k = 0; k < k_threads; ++k)
    threads.emplace_back([&, k] {
      for (int i = 0; i < k_adds; ++i)
        wrong[static_cast<size_t>(k)] += xio_host_atomic_fetch_add(p.t.world(), p.t.ctx, word, 1, 0, nullptr) != XIO_OK;
    });
  for (std::thread& one : threads) one.join();
  for (const int w : wrong) rig::expect(w == 0, "a thread's %d adds", w);
  p.t.barrier();
  BY_HOST(xio_host_atomic_fetch, word, 0, &old);
  expect_old(static_cast<uint64_t>(k_threads * k_adds * p.t.n), "adds of all threads");
  p.t.barrier();
  BY_HOST(xio_host_atomic_set, word, 0, p.t.me);
  p.t.barrier();
}

void call_from_host(const place& p) {
  for (const size_t bytes : {size_t{0}, size_t{8}, size_t{1001}, k_most}) {
    rig::team::write(p.dst, bytes_t(p.room(), rig::k_poison));
    p.t.barrier();
    BY_HOST(xio_host_put, p.dst, p.src, bytes, p.next());
    rig::expect_status(xio_host_quiet(p.t.world(), p.t.ctx), XIO_OK, "xio_host_quiet");
    BY_HOST(xio_host_put_signal, p.dst + k_most, p.src, bytes, p.sig, 3, XIO_SIGNAL_ADD, p.next());
    BY_HOST(xio_host_signal_op, p.sig, 2, XIO_SIGNAL_ADD, p.next());
    BY_HOST(xio_host_signal_wait, p.sig, XIO_CMP_GE, 5, 0);
    BY_HOST(xio_host_get, p.dst + k_most, p.dst, bytes, p.t.me);
    p.t.barrier();
    bytes_t wanted = place::block(p.last(), 0, bytes);
    wanted.resize(k_most, rig::k_poison);
    const bytes_t first = wanted;
    wanted.insert(wanted.end(), first.begin(), first.end());
    wanted.resize(p.room(), rig::k_poison);
    rig::expect_same(rig::team::read(p.dst, p.room()), wanted, ("by the host, " + std::to_string(bytes)).c_str());
    BY_HOST(xio_host_atomic_set, p.sig, 0, p.t.me);
    p.t.barrier();
  }
  change_words(p);
}

// A failure of the host's is its own, and the next call is made; one of calls on streams does not end the host's.
void fail_from_host(const place& p) {
  xio_world_t* w = p.t.world();
  const xio_ctx_t& c = p.t.ctx;
  uint64_t own[2] = {};
  const std::vector<refusal> table = {
      {XIO_ERR_ARG, "world is null", [&] { return xio_host_quiet(nullptr, c); }},
      {XIO_ERR_ARG, "the ctx is empty", [&] { return xio_host_quiet(w, xio_ctx_t{}); }},
      {XIO_ERR_PE, "xio_host_put: PE", [&] { return xio_host_put(w, c, p.dst, p.src, 8, p.t.n); }},
      {XIO_ERR_NOT_SYMMETRIC, "dst", [&] { return xio_host_put(w, c, own, p.src, 8, 0); }},
      {XIO_ERR_ARG, "old is null", [&] { return xio_host_atomic_fetch(w, c, p.sig, 0, nullptr); }},
      {XIO_ERR_NOT_SYMMETRIC, "sig", [&] { return xio_host_atomic_set(w, c, own, 1, 0); }},
      {XIO_ERR_TIMEOUT,
       "xio_host_signal_wait: ", [&] { return xio_host_signal_wait(w, c, p.sig, XIO_CMP_EQ, 9, 300); }},
  };
  for (const refusal& r : table) {
    xio_status_t got = XIO_OK;
    const double took = seconds_of([&] { got = r.call(); });
    rig::expect_status(got, r.status, r.part);
    rig::expect(std::strstr(xio_last_error(), r.part) != nullptr, "'%s' has no '%s'", xio_last_error(), r.part);
    rig::expect(took < 5 && (took > 0.2) == (r.status == XIO_ERR_TIMEOUT), "%s took %.2f s", r.part, took);
  }
  expect_first(p, XIO_OK, "after failures of the host's calls");
  BY_HOST(xio_host_put, p.dst, p.src, 8, p.t.me);
  xio_stream_attr_t soon = XIO_STREAM_ATTR_INIT;
  soon.timeout_ms = 100;
  rig::expect_status(xio_signal_wait_on_stream(w, c, p.sig, XIO_CMP_EQ, 9, p.stream, &soon), XIO_OK, "a wait in vain");
  p.sync();
  expect_first(p, XIO_ERR_TIMEOUT, "a wait in vain");
  BY_HOST(xio_host_put, p.dst, p.src, 8, p.t.me);
  MUST(xio_ctx_clear(w, c));
  p.t.barrier();
}

// --- Graphs ------------------------------------------------------------------------------------------

constexpr size_t k_words = 700;
constexpr uint64_t k_sent = 1000;

// The words of one stream's graph.
struct loop_words {
  int64_t *mine, *sums, *all, *from_last;  // symmetric: 1, 1, a word of each PE, k_words
  uint64_t* sig;
  int* bad;
};

__global__ void prepare_round(loop_words w, int me) {
  ++*w.mine;
  for (size_t i = threadIdx.x; i < k_words; i += blockDim.x) w.from_last[k_words + i] = *w.mine * (me + 1);
}
// One replay later than prepare_round every PE has the same number.
__global__ void judge_round(loop_words w, int n, int last) {
  const int64_t round = *w.mine;
  if (*w.sums != round * n) ++*w.bad;
  for (int pe = 0; pe < n; ++pe)
    if (w.all[pe] != round) ++*w.bad;
  for (size_t i = 0; i < k_words; ++i)
    if (w.from_last[i] != round * (last + 1)) ++*w.bad;
}

// A graph that does the same with another number in every replay. barriers: of all PEs, which one stream at a time
// makes.
hipGraphExec_t capture_loop(const place& p, const loop_words& w, bool barriers) {
  hipGraph_t graph = nullptr;
  hipGraphExec_t exec = nullptr;
  MUST(hipStreamBeginCapture(p.stream, hipStreamCaptureModeGlobal));
  hipLaunchKernelGGL(prepare_round, dim3(1), dim3(1), 0, p.stream, w, p.t.me);
  GIVE(xio_reduce_on_stream, p.team, XIO_REDUCE_SUM, XIO_INT64, w.sums, w.mine, 1);
  GIVE(xio_fcollect_on_stream, p.team, w.all, w.mine, sizeof *w.mine);
  GIVE(xio_put_signal_on_stream, w.from_last, w.from_last + k_words, k_words * sizeof *w.from_last, w.sig, k_sent,
       XIO_SIGNAL_ADD, p.next());
  GIVE(xio_signal_take_on_stream, w.sig, k_sent);
  hipLaunchKernelGGL(judge_round, dim3(1), dim3(1), 0, p.stream, w, p.t.n, p.last());
  if (barriers)
    GIVE_ALONE(xio_barrier_all_on_stream);
  else
    GIVE(xio_team_barrier_on_stream, p.team);
  expect_first(p, XIO_OK, "in a capture");
  MUST(hipStreamEndCapture(p.stream, &graph));
  MUST(hipGraphInstantiateWithFlags(&exec, graph, 0));
  MUST(hipGraphDestroy(graph));
  return exec;
}

loop_words words_of(const place& p) {
  loop_words w{p.t.symmetric<int64_t>(1),
               p.t.symmetric<int64_t>(1),
               p.t.symmetric<int64_t>(static_cast<size_t>(p.t.n)),
               p.t.symmetric<int64_t>(2 * k_words),
               p.t.symmetric<uint64_t>(1),
               nullptr};
  MUST(hipHostMalloc(&w.bad, sizeof *w.bad, 0));
  *w.bad = 0;
  return w;
}

// Two graphs in two streams, each on a channel of its own. `leave_at`: the last PE ends in the middle.
void replay(place& p, int rounds, int leave_at) {
  place q = p;
  q.team = xio_team_channel(p.team, 1);
  MUST(hipStreamCreateWithFlags(&q.stream, hipStreamNonBlocking));
  q.attr.status = nullptr;
  p.attr.timeout_ms = q.attr.timeout_ms = leave_at >= 0 ? 500 : 0;
  const loop_words mine = words_of(p), other = words_of(q);
  const hipGraphExec_t first = capture_loop(p, mine, true), second = capture_loop(q, other, false);
  p.t.barrier();
  const double took = seconds_of([&] {
    for (int i = 0; i < rounds; ++i) {
      if (i == leave_at && p.t.me == p.t.n - 1) _exit(0);
      MUST(hipGraphLaunch(first, p.stream));
      MUST(hipGraphLaunch(second, q.stream));
    }
    p.sync();
    q.sync();
  });
  if (leave_at >= 0) {
    rig::expect(took < 10, "%d replays with a dead PE took %.2f s", rounds, took);
    xio_status_t found = XIO_OK;
    MUST(xio_ctx_failed(p.t.world(), p.t.ctx, &found));
    rig::expect(found == XIO_ERR_TIMEOUT || found == XIO_ERR_TRANSPORT, "with a dead PE: %s", xio_status_name(found));
    rig::expect_status(*static_cast<volatile xio_status_t*>(p.status), found, "the last call");
    return;
  }
  expect_first(p, XIO_OK, "replays");
  rig::expect_status(*static_cast<volatile xio_status_t*>(p.status), XIO_OK, "the last call");
  for (const loop_words& w : {mine, other}) {
    rig::expect(*w.bad == 0, "%d words of %d replays are wrong", *w.bad, rounds);
    rig::expect(rig::team::read(w.mine, 1)[0] == rounds, "%d replays", rounds);
  }
  p.t.barrier();
  MUST(hipGraphExecDestroy(first));
  MUST(hipGraphExecDestroy(second));
  MUST(hipStreamDestroy(q.stream));
}

// The last PE ends without a word: in front of calls, or in the middle of replays.
int go_on_alone(place& p, bool in_graphs) {
  p.t.barrier();
  if (p.t.me == p.t.n - 1 && !in_graphs) _exit(0);
  if (in_graphs)
    replay(p, 200, 50);
  else
    fail_once(p, "a barrier with a dead PE", true, [&] { GIVE_ALONE(xio_barrier_all_on_stream); });
  std::printf("stream dead: PE %d: %d failed\n", p.t.me, rig::failures);
  std::fflush(nullptr);
  _exit(rig::failures == 0 ? 0 : 1);
}

}  // namespace

int main(int argc, char** argv) {
  rig::options o;
  o.heap_bytes = 64 << 20;
  const rig::team t(o);
  xio_team_t team;
  MUST(xio_team_world(t.world(), &team));
  place p{t, team, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, XIO_STREAM_ATTR_INIT};
  p.dst = t.symmetric<unsigned char>(p.room());
  p.src = t.symmetric<unsigned char>(p.room());
  p.sums = p.dst + (k_most + k_guard + 255) / 256 * 256;
  const rig::device_array<size_t> tables(4 * static_cast<size_t>(t.n));
  p.tables = tables.data();
  p.sig = t.symmetric<uint64_t>(2);
  rig::team::write(p.src, rig::source_of(t.me, p.room()));
  MUST(hipStreamCreateWithFlags(&p.stream, hipStreamNonBlocking));
  MUST(hipHostMalloc(&p.status, sizeof *p.status, 0));
  p.attr.status = p.status;
  MUST(xio_stream_prepare(t.world(), t.ctx));
  const std::string how = argc > 1 ? argv[1] : "";
  if (how == "dead" || how == "dies") return go_on_alone(p, how == "dies");
  move_all(p);
  reduce_all(p);
  store_and_read(p);
  give_by_threads(p);
  pass_words(p);
  refuse_all(p);
  fail_all(p);
  call_from_host(p);
  fail_from_host(p);
  replay(p, rig::is_short() ? 20 : t.route == "direct" ? 1000 : 200, -1);
  MUST(xio_team_destroy(t.world(), team));
  MUST(hipStreamDestroy(p.stream));
  return rig::verdict("stream", t);
}
