// SPDX-License-Identifier: MIT
#include "ctx/world.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/peer_word.hpp"
#include "base/trace.hpp"
#include "ctx/call_text.hpp"
#include "ctx/failure_text.hpp"
#include "ctx/hdp.hpp"
#include "ctx/job_picture.hpp"
#include "ctx/program.hpp"
#include "ctx/rings.hpp"

namespace xio {
namespace {

std::uint32_t next_world_number() {
  static std::atomic<std::uint32_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

// Of all that a ctx's engines and calls have kept, the failure that a program has to know.
xio_error_info_t kept_error(const context& c, const storage_book& storages, const call_place& here) {
  const std::uint32_t used = c.storages_used();
  xio_error_info_t info = XIO_ERROR_INFO_INIT;
  std::uint64_t when = 0;
  // A queue that has stopped, else the last op of a drive that failed by itself.
  if (!c.ring_failure(info, when) &&
      !storages.any_of(used, [&](const auto& rings) { return find_stopped(rings, info, when); }))
    storages.any_of(used, [&](const auto& rings) { return find_failure(rings, {}, info, when); });
  // The last failure: a call's own, unless it only met what its engine had recorded.
  dev::call_record call{};
  if (!c.failed_call(call)) return info;
  const auto status = static_cast<xio_status_t>(static_cast<std::int32_t>(call.status));
  if (info.status != XIO_OK && (status == info.status || call.clock <= when)) return info;
  xio_error_info_t own{sizeof own, status, "device", 0, 0, 0, ""};
  const auto on = is_transfer(call) ? storages.place_of(call.pe) : std::nullopt;
  call_place there = here;
  if (on) there.storage = &*on;
  put_sentence(own, call_text(call, there));
  return own;
}

}  // namespace

world::world(options o, std::unique_ptr<bootstrap::channel> channel)
    : options_(std::move(o)), members_(options_, std::move(channel)) {
  if (trace::wants_ranges(options_.trace)) trace::open_ranges();
  if (const std::string file = trace::file_of(options_.trace); !file.empty())
    trace::start(file, members_.me(), members_.size(), members_.clock_lead());
  heap_.emplace(options_, members_);
  // The last word of xio_init: after it every PE has mapped what it needs of the others.
  members_.agree().each(call::init, [&] {
    publish();
    if (members_.survivors() != nullptr) reserve_for_views();
  });
  log::info("PE {} of {} by {}, {} platform, heap {} bytes at {}", members_.me(), members_.size(),
            members_.channel().name(), gpu::name(), heap_->size(), static_cast<void*>(heap_->data()));
}

void world::publish() {
  view_.reset(static_cast<dev::world_view*>(graveyard::take(sizeof(dev::world_view), gpu::purpose::tables)));
  dev::world_view v{};
  v.my_pe = static_cast<std::uint32_t>(members_.me());
  v.n_pes = static_cast<std::uint32_t>(members_.size());
  v.heap = heap_->data();
  v.heap_bytes = heap_->size();
  v.ticks_per_ms = gpu::ticks_per_ms();
  v.timeout_ticks = options_.timeout_ms * v.ticks_per_ms;
  pe_states_ = gpu::buffer(v.n_pes * sizeof(std::uint32_t), gpu::place::shared);
  v.pe_states = pe_states_.as<std::uint32_t>();
  members_.states().show_at(pe_states_.as<std::uint32_t>());
  waits_.emplace(options_, members_, v.heap, v.heap_bytes);
  v.waits = waits_->notes();
  auto* const at = view_.get();
  gpu::put_value(at, v);
  engines_ = std::make_unique<engines>(options_, members_.channel(), heap_->memory(), heap_->peers(), at->regions,
                                       members_.place().local_rank);
  engines_->place_gpus(heap_->gpus());
  hdp_ = open_hdp(options_, *engines_, heap_->memory());
  const std::uint32_t number = next_world_number();
  teams_.emplace(options_, members_, *heap_, number);
  storages_.emplace(options_, *engines_, at->storages, number);
  contexts_.emplace(context_book::ground{options_, members_, *heap_, at, *engines_, *hdp_, *storages_, *waits_},
                    number);
  program::check_layout("xio_init");
  gpu::put_value(&at->hdp, hdp_->view());
  if (!program::has_all()) contexts_->check_program();
}

xio_storage_t world::open_storage(const char* name, const xio_storage_attr_t* attr) {
  const auto opened = storages_->open(name, attr, [&](std::uint32_t row) { contexts_->forget_storage(row); });
  const auto& rings = storages_->rings(opened);
  std::string drive;
  for (const char c : printable(name)) drive += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  const auto serial = static_cast<std::uint32_t>(opened.id);
  waits_->show({&rings, fmt::format("storage=\"{}\",drive=\"{}\"", serial, drive), rings, {}, {}}, name);
  return opened;
}

void world::close_storage(xio_storage_t s) {
  waits_->forget(&storages_->rings(s));
  storages_->close(s);
}

xio_error_info_t world::ctx_error(xio_ctx_t ctx) const {
  const auto info = kept_error(
      contexts_->get(ctx), *storages_,
      {reinterpret_cast<std::uint64_t>(heap_->data()), heap_->size(), static_cast<std::uint32_t>(members_.size())});
  if (info.status == XIO_ERR_TIMEOUT) info::show_once(members_.job(), members_.timeout_ms());
  return info;
}

xio_pe_info_t world::pe_state(int pe) { return members_.states().find(pe, contexts_->silence_of(pe)); }

std::vector<int> world::exclude(const std::vector<int>& pes) {
  // Barriers among the living have a list of them again once all have agreed on one.
  dev::living_view* const none = nullptr;
  gpu::put_value(&view_.get()->living, none);
  for (const int pe : pes) members_.states().exclude(pe);
  contexts_->exclude(pes);
  std::vector<int> could;
  for (const int pe : pes)
    if (heap_->peers().base(pe) != nullptr && !members_.states().is_dead(pe)) could.push_back(pe);
  log::info("PE {} goes on without {} PEs, of which {} can still write to its heap", members_.me(), pes.size(),
            could.size());
  return could;
}

void world::close_all() {
  waits_->end_counts();
  contexts_->clear();
  storages_->clear();
  teams_->clear();
  engines_.reset();
  hdp_.reset();
  heap_->unmap_peers();
}

void world::wait_for_kernels() {
  in_use_ = !gpu::wait_for_kernels(options_.timeout_ms);
  if (in_use_)
    fail(XIO_ERR_STATE,
         "xio_finalize: a kernel still runs after {} ms, and may be using the world, whose memory is kept for it until "
         "the process ends; end kernels first",
         options_.timeout_ms);
}

void world::finalize() {
  std::exception_ptr first;
  const auto finish_together = [&](auto&& step) {
    try {
      members_.agree().each(call::finalize, step);
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  };
  finish_together([&] { wait_for_kernels(); });
  if (in_use_) std::rethrow_exception(first);
  close_all();
  // A heap goes away only after every PE has let go of it.
  if (!first) finish_together([] {});
  view_.reset();
  waits_.reset();
  heap_.reset();
  if (first) std::rethrow_exception(first);
}

}  // namespace xio
