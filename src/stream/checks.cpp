// SPDX-License-Identifier: MIT
#include "stream/checks.hpp"

#include "ctx/attributes.hpp"
#include "xio/device/impl/layout.hpp"
#include "xio/device/impl/team_layout.hpp"

namespace xio::stream {
namespace {

constexpr std::uint32_t k_most_workgroups = 1024;
constexpr std::uint64_t k_bytes_of_a_workgroup = 64 << 10;
// Of a collective: up to which one workgroup is as fast as many on an H200, and what one of many has.
constexpr std::uint64_t k_bytes_of_one = 16 << 10, k_bytes_of_a_sharer = 16 << 10;

std::uint32_t own_timeout(std::uint32_t ms) {
  return ms == UINT32_MAX ? dev::k_no_timeout : std::min(ms, dev::k_no_timeout - 1);
}

bool is_aligned(const void* p, std::size_t bytes) { return reinterpret_cast<std::uintptr_t>(p) % bytes == 0; }

}  // namespace

order::order(xio::world& w, const char* function, xio_ctx_t ctx, xio_stream_t stream, const xio_stream_attr_t* attr)
    : world_(w), function_(function), ctx_(w.contexts().get(ctx)), attr_(read_attr(attr, "xio_stream_attr_t")) {
  if (ctx.view != ctx_.view() || ctx.layout != dev::k_layout)
    fail(XIO_ERR_ARG, "{}: the ctx is not as xio_ctx_create returned it; give that value, unchanged", function);
  if (attr_.flags != 0)
    fail(XIO_ERR_CONFIG, "{}: xio_stream_attr_t.flags is {:#x}, and there are none; set it to 0", function,
         attr_.flags);
  if (attr_.workgroups > k_most_workgroups)
    fail(XIO_ERR_CONFIG, "{}: xio_stream_attr_t.workgroups is {}; give at most {}, or 0 for the library's choice",
         function, attr_.workgroups, k_most_workgroups);
  if (!is_aligned(attr_.status, sizeof(xio_status_t)))
    fail(XIO_ERR_ARG, "{}: xio_stream_attr_t.status {} is no aligned word; give the address of an xio_status_t",
         function, static_cast<const void*>(attr_.status));
  if (gpu::stream_is_elsewhere(stream))
    fail(XIO_ERR_ARG, "{}: the stream {} is of another GPU, and this PE's is {}; make it while that one is current",
         function, stream, std::max(gpu::selected_device(), 0));
  launch_.ctx = ctx;
  reached_by_kernels(attr_.status, "xio_stream_attr_t.status");
  launch_.ctx.flags &= (1u << dev::k_own_timeout_shift) - 1;
  launch_.ctx.flags |= own_timeout(attr_.timeout_ms) << dev::k_own_timeout_shift;
  launch_.stream = stream;
}

void order::team(xio_team_t t) {
  if (t.n_pes == 0)
    fail(XIO_ERR_STATE, "{}: the team is empty: this PE is in none; let the members call alone", function_);
  const xio::team& known = world_.teams().get(t);
  if (known.pes.size() != t.n_pes || t.channel >= world_.teams().channels())
    fail(XIO_ERR_ARG, "{}: the team is not as xio_team_create or xio_team_channel returned it; give that value",
         function_);
  launch_.team = t;
}

void order::root(int root) { is_one_of(root, static_cast<int>(members()), "root"); }

void order::pe(int pe) const {
  const int n = world_.members().size();
  if (pe < 0 || pe >= n) fail(XIO_ERR_PE, "{}: PE {} is not one of this world's 0 to {}", function_, pe, n - 1);
}

std::size_t order::product(std::size_t count, std::size_t bytes, const char* what) const {
  std::size_t out = 0;
  if (__builtin_mul_overflow(count, bytes, &out))
    fail(XIO_ERR_ARG, "{}: {} of {} times {} bytes is more than a size can say; give less", function_, what, count,
         bytes);
  return out;
}

void order::symmetric(const void* p, std::size_t bytes, const char* what) const {
  if (bytes == 0) return;
  if (p == nullptr) fail(XIO_ERR_ARG, "{}: {} is null; give the address of symmetric memory", function_, what);
  const auto begin = reinterpret_cast<std::uintptr_t>(launch_.ctx.arena);
  const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(p) - begin;
  if (at <= launch_.ctx.arena_bytes && bytes <= launch_.ctx.arena_bytes - at) return;
  fail(XIO_ERR_NOT_SYMMETRIC,
       "{}: {} {} with {} bytes is not in the symmetric heap, {} to {:#x}; give memory of xio_malloc, or a larger "
       "XIO_HEAP_SIZE",
       function_, what, p, bytes, static_cast<const void*>(launch_.ctx.arena), begin + launch_.ctx.arena_bytes);
}

bool order::by_engine(int pe) const { return ctx_.plan().to[static_cast<std::size_t>(pe)].small != dev::route::direct; }

// The heap needs no question to the runtime.
void order::reached_by_kernels(const void* p, const char* what) const {
  const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(launch_.ctx.arena);
  if (p == nullptr || at < launch_.ctx.arena_bytes || gpu::kernels_reach(p)) return;
  fail(XIO_ERR_NOT_REGISTERED,
       "{}: {} {} is memory that kernels do not reach; give memory of the GPU's runtime (hipMalloc, hipHostMalloc), of "
       "xio_malloc or xio_mem_alloc",
       function_, what, p);
}

void order::local(const void* p, std::size_t bytes, const char* what, int pe) const {
  if (bytes == 0) return;
  if (p == nullptr) fail(XIO_ERR_ARG, "{}: {} is null; give the address of {} bytes", function_, what, bytes);
  if (!by_engine(pe)) return reached_by_kernels(p, what);
  if (world_.local_memory().knows(p, bytes)) return;
  fail(XIO_ERR_NOT_REGISTERED,
       "{}: {} {} with {} bytes is neither symmetric nor registered, and {} carries it to or from PE {}; register it "
       "with xio_mem_register",
       function_, what, p, bytes, route_name(ctx_.plan().to[static_cast<std::size_t>(pe)].small), pe);
}

void order::for_drives(xio_storage_t s, const void* p, std::size_t bytes) const {
  if (bytes == 0) return;
  const bool anywhere = (world_.storages().info(s).features & dev::storage_of_bytes) != 0;
  if (p == nullptr || (!anywhere && !is_aligned(p, 4)))
    fail(XIO_ERR_ARG, "{}: buf {} is null or not 4-byte aligned; give the address of {} bytes", function_, p, bytes);
  if (world_.local_memory().knows(p, bytes)) return;
  fail(XIO_ERR_NOT_REGISTERED,
       "{}: buf {} with {} bytes is neither symmetric nor registered; register it with xio_mem_register", function_, p,
       bytes);
}

void order::local_of_team(const void* p, std::size_t bytes, const char* what) const {
  if (bytes == 0) return;
  if (p == nullptr) fail(XIO_ERR_ARG, "{}: {} is null; give the address of {} bytes", function_, what, bytes);
  reached_by_kernels(p, what);
  // Smaller messages go as packets, out of memory of the team's.
  if (bytes <= launch_.team.packet_bytes) return;
  for (const int pe : world_.teams().get(launch_.team).pes)
    if (pe != world_.members().me()) local(p, bytes, what, pe);
}

void order::storage(xio_storage_t s, std::uint64_t offset, std::size_t bytes, bool writes) const {
  const dev::storage_view& view = world_.storages().info(s);
  if (s.view != world_.storages().row(s))
    fail(XIO_ERR_ARG, "{}: the storage is not as xio_storage_open returned it; give that value, unchanged", function_);
  if (writes && view.read_only != 0)
    fail(XIO_ERR_ARG, "{}: the storage is read-only; open it without XIO_STORAGE_READ_ONLY", function_);
  const bool of_bytes = (view.features & dev::storage_of_bytes) != 0;
  if (!of_bytes && (offset % view.block_bytes != 0 || bytes % view.block_bytes != 0))
    fail(XIO_ERR_ARG, "{}: {} bytes from {} on are no whole blocks of {}; give multiples of the block", function_,
         bytes, offset, view.block_bytes);
  if (offset > view.bytes || bytes > view.bytes - offset)
    fail(XIO_ERR_ARG, "{}: {} bytes from {} on end behind the storage's {}; give less", function_, bytes, offset,
         view.bytes);
}

void order::word(const std::uint64_t* sig) const {
  symmetric(sig, sizeof *sig, "sig");
  if (!is_aligned(sig, sizeof *sig))
    fail(XIO_ERR_ARG, "{}: sig {} is not 8-byte aligned; give the address of a uint64_t", function_,
         static_cast<const void*>(sig));
}

void order::is_one_of(int value, int count, const char* what) const {
  if (value < 0 || value >= count)
    fail(XIO_ERR_ARG, "{}: {} is {}, not one of 0 to {}", function_, what, value, count - 1);
}

void order::combines(xio_reduction_t op, xio_type_t type) const {
  if (op >= XIO_REDUCE_AND && type >= XIO_HALF)
    fail(XIO_ERR_ARG, "{}: AND, OR and XOR are for integers; give another op, or an integer type", function_);
}

void order::put_in_stream(std::uint32_t workgroups, bool last) {
  launch_.workgroups = workgroups;
  launch_.what.failed = mark_ == nullptr ? ctx_.stream_failed() : nullptr;
  launch_.what.mark = mark_;
  launch_.what.status = last ? attr_.status : nullptr;
  if (const char* why = refusal_of(launch_))
    fail(XIO_ERR_IO, "{}: the runtime does not take it into the stream {}: {}; give a stream of GPU {} that lives",
         function_, launch_.stream, why, std::max(gpu::selected_device(), 0));
}

void order::give(call what, const job& j) {
  launch_.what = j;
  launch_.what.what = what;
  put_in_stream(1, true);
}

// How many workgroups: 1 for what packets or areas carry, see team_reduce.hpp, and where engines are the way.
std::uint32_t order::sharers(call what, std::uint64_t bytes) const {
  const xio_team_t& t = launch_.team;
  const bool reduces = what == call::reduce || what == call::reduce_scatter;
  if (what == call::alltoallv || what == call::collect || (launch_.ctx.flags & dev::ctx_all_mapped) == 0) return 1;
  if (bytes <= (reduces ? dev::team_part_bytes(t.n_pes, t.area_bytes) : t.packet_bytes)) return 1;
  // They wait for the members at the same time, so no more than may be resident.
  if (attr_.workgroups != 0) return std::min(attr_.workgroups, std::max(8u, 4 * most_workgroups()));
  if (bytes <= k_bytes_of_one) return 1;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes / k_bytes_of_a_sharer, most_workgroups()));
}

void order::give_collective(call what, const job& j) {
  launch_.what = j;
  launch_.what.what = what;
  put_in_stream(sharers(what, j.bytes), true);
}

// A large copy by loads and stores is made by several workgroups, and what comes after it by a launch of its own: the
// stream puts it behind all of them.
void order::copy(call what, const job& j) {
  std::uint64_t share = attr_.workgroups;
  if (share == 0) share = std::min<std::uint64_t>(j.bytes / k_bytes_of_a_workgroup, most_workgroups());
  if (by_engine(j.pe) || share < 2) return give(what, j);
  launch_.what = j;
  launch_.what.what = what == call::get ? call::get : call::put;
  const bool more = what == call::put_signal || attr_.status != nullptr;
  put_in_stream(static_cast<std::uint32_t>(share), !more);
  launch_.what.what = what == call::put_signal ? call::signal_op : call::report;
  if (more) put_in_stream(1, true);
}

void fill(job& j, void* dst, const void* src, std::size_t bytes, int pe) {
  j.pe = pe;
  j.dst = dst;
  j.src = src;
  j.bytes = bytes;
}

void fill_put(const order& o, job& j, void* dst, const void* src, std::size_t bytes, int pe) {
  o.pe(pe);
  o.symmetric(dst, bytes, "dst");
  o.local(src, bytes, "src", pe);
  fill(j, dst, src, bytes, pe);
}

void fill_get(const order& o, job& j, void* dst, const void* src, std::size_t bytes, int pe) {
  o.pe(pe);
  o.symmetric(src, bytes, "src");
  o.local(dst, bytes, "dst", pe);
  fill(j, dst, src, bytes, pe);
}

void fill_signal(const order& o, job& j, std::uint64_t* sig, std::uint64_t value, xio_signal_op_t op, int pe) {
  o.pe(pe);
  o.word(sig);
  o.is_one_of(op, XIO_SIGNAL_ADD + 1, "op");
  j.pe = pe;
  j.sig = sig;
  j.value = value;
  j.how = static_cast<std::uint32_t>(op);
}

void fill_wait(const order& o, job& j, const std::uint64_t* sig, xio_cmp_t cmp, std::uint64_t value) {
  o.word(sig);
  o.is_one_of(cmp, XIO_CMP_LE + 1, "cmp");
  j.sig = const_cast<std::uint64_t*>(sig);
  j.value = value;
  j.how = static_cast<std::uint32_t>(cmp);
}

}  // namespace xio::stream
