// SPDX-License-Identifier: MIT
#include "transport/nvme/kmod_controller.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "gpu/memory.hpp"
#include "memory/dmabuf.hpp"
#include "memory/hdp_facts.hpp"
#include "transport/nvme/doorbell_trial.hpp"
#include "transport/nvme/holders.hpp"
#include "transport/nvme/queue_set.hpp"
#include "xio/device/impl/nvme.hpp"

namespace xio::nvme {

namespace w = wire::nvme;

namespace {

constexpr std::size_t k_register_page = 4096;
constexpr std::chrono::seconds k_trial_limit{10};
// Of the watch: an admin command each, which the module sends for one process after the other.
constexpr std::chrono::milliseconds k_watch_period{250};

// "" where a GPU needs no flush of what a drive wrote into its memory; polling a CQ there would want one each time.
const char* why_no_cq_on_gpu() {
  if (!gpu::has_device_memory()) return nullptr;
  const memory::hdp_facts facts = memory::hdp_facts_here();
  if (facts.link == memory::hdp_link::none) return nullptr;
  try {
    if (memory::decide_hdp(facts, option::hdp::automatic).way == dev::hdp_way::none) return nullptr;
  } catch (const error& e) {
    log::debug("{}", e.what());
  }
  return "its host data path holds back what a drive writes there until it is flushed, and a poll does not flush it";
}

// Stores what a host thread carries into the page of the queue that it belongs to.
class page_writer : public register_writer {
 public:
  explicit page_writer(std::map<std::uint32_t, std::uint32_t*> registers) : registers_(std::move(registers)) {}
  bool write(std::uint32_t offset, std::uint32_t value) override {
    const auto at = registers_.find(offset);
    if (at != registers_.end()) __atomic_store_n(at->second, value, __ATOMIC_RELEASE);
    return true;
  }

 private:
  std::map<std::uint32_t, std::uint32_t*> registers_;  // by offset in BAR 0
};

}  // namespace

memory::ring_places kmod_controller::places(const nvme_options& o) const {
  const bool on_gpu = module_.pins_queues() || !gpu::has_device_memory();
  const char* older =
      "the kernel module that is loaded makes no queues in memory of the GPU; load that of this version";
  const memory::ability sq{gpu::place::shared, on_gpu ? nullptr : older};
  const memory::ability cq{gpu::place::shared, on_gpu ? why_no_cq_on_gpu() : older};
  return memory::place_rings(o.memory_mode, "an NVMe controller by the kernel module", sq, cq,
                             {gpu::place::shared, "its doorbells are registers of the controller"});
}

kmod_controller::kmod_controller(const std::string& name, const std::string& bdf, std::uint32_t nsid,
                                 const xio_storage_attr_t& attr, const nvme_options& o, progress::machine& machine,
                                 kmod_calls& calls)
    : name_(name), read_only_((attr.flags & XIO_STORAGE_READ_ONLY) != 0), machine_(machine), module_(name, bdf, calls) {
  const std::uint32_t depth = checked_depth(attr, o), wanted = checked_queues(attr);
  if (o.nvme_queue_id != 0)
    fail(XIO_ERR_ARG, "cannot open {}: the kernel module chooses the queues; leave XIO_NVME_QUEUE_ID out", name);
  try {
    identify(nsid);
    check_namespace(facts_, attr, name);
    if (facts_.shared && !read_only_)
      refuse_namespace_in_use({facts_.nguid, facts_.eui64, facts_.nsid, facts_.blocks * facts_.block_bytes}, name);
    depth_that_fits(depth, *this);
    fit_transfers(depth);
    memory_ = std::make_unique<kmod_memory>(module_, name);
    make_queues(attr, o);
    choose_doorbells(o);
    watch_ = std::make_unique<drive_watch>(
        k_watch_period, std::vector<int>{}, [this] { return trouble(); }, [this](const auto& what) { lose(what); });
  } catch (...) {
    close();
    throw;
  }
  if (queue_count() < wanted)
    log::warn("{} has {} I/O queues left and not the {} that were asked for", name, queue_count(), wanted);
  backend_ =
      std::string("kernel module, doorbells ") + name_of(keeper_ == nullptr ? doorbell_way::bar : doorbell_way::host);
  log::debug("{}: {} queues of {} entries, {} blocks of {} bytes, {} bytes a command, {}", name, queue_count(), depth,
             facts_.blocks, facts_.block_bytes, facts_.transfer_bytes, backend_);
}

kmod_controller::~kmod_controller() { close(); }

void kmod_controller::identify(std::uint32_t nsid) {
  std::vector<unsigned char> page(w::k_identify_bytes);
  const std::uint64_t cap = module_.identify(static_cast<std::uint32_t>(w::cns::controller), 0, page.data());
  read_capabilities(cap, name_, facts_);
  read_controller(page.data(), facts_);
  module_.identify(static_cast<std::uint32_t>(w::cns::active_namespaces), nsid - 1, page.data());
  facts_.nsid = choose_namespace(page.data(), nsid, name_);
  module_.identify(static_cast<std::uint32_t>(w::cns::name_space), facts_.nsid, page.data());
  read_namespace(page.data(), name_, facts_);
}

// The lists of a queue are one piece of the module's memory; shorter transfers have shorter lists.
void kmod_controller::fit_transfers(std::uint32_t depth) {
  const auto lists = [&] { return dev::op_count_for(depth) * dev::prp_room(facts_.transfer_bytes, facts_.page_bytes); };
  while (lists() > module_.info().max_block &&
         facts_.transfer_bytes > std::max(facts_.block_bytes, 2 * facts_.page_bytes))
    facts_.transfer_bytes /= 2;
}

// With PRP lists, also where the drive has descriptors: one of those names one piece, and memory may lie in many.
void kmod_controller::make_queues(const xio_storage_attr_t& attr, const nvme_options& o) {
  const memory::ring_places where = places(o);
  const std::uint32_t depth = checked_depth(attr, o), wanted = checked_queues(attr);
  for (std::uint32_t i = 0; i < wanted; ++i) {
    try {
      queues_.push_back(
          std::make_unique<io_queue>(static_cast<queue_maker&>(*this), i + 1, depth, o.ticket_start, false, where));
    } catch (const error& e) {
      // Other processes may have the rest of the controller's queues: some are enough.
      if (i == 0 || e.status() != XIO_ERR_NO_MEMORY) throw;
      log::debug("{}", e.what());
      break;
    }
  }
}

void kmod_controller::choose_doorbells(const nvme_options& o) {
  const bool reached = std::ranges::all_of(pairs_, [](auto& p) { return p.second.kernels_page != nullptr; });
  doorbell_reach can;
  can.registers = reached ? pairs_.begin()->second.kernels_page : nullptr;
  // The module configures no doorbell buffer, so there are no shadows.
  drive_facts plain = facts_;
  plain.shadow_doorbells = false;
  const doorbell_way way = nvme::choose_doorbells(o.nvme_doorbell, plain, can, name_);
  if (way == doorbell_way::bridge)
    fail(XIO_ERR_UNSUPPORTED,
         "{}: no bridge reaches the doorbells of the kernel module, as XIO_NVME_DOORBELL=bridge asks; use host or auto",
         name_);
  if (way == doorbell_way::bar) {
    std::vector<tried_queue> all;
    for (const auto& q : queues_) {
      const pair& p = pairs_.at(q->id());
      all.push_back({q.get(), reinterpret_cast<std::uint32_t*>(p.kernels_page + p.made.sq_doorbell), registers_of(p)});
    }
    if (kernels_ring(*this, all, o)) {
      polled_.emplace();
      return;
    }
  }
  const std::uint32_t last = pairs_.rbegin()->first;
  words_ = std::make_unique<drive_memory>(static_cast<bus&>(*this),
                                          w::cq_head_doorbell(last, facts_.stride) + 4 - w::k_reg_doorbells);
  std::map<std::uint32_t, std::uint32_t*> registers;
  for (const auto& q : queues_) {
    const io_queue::doorbell_words at = registers_of(pairs_.at(q->id())), words = words_of(q->id());
    registers[w::sq_tail_doorbell(q->id(), facts_.stride)] = at.sq;
    registers[w::cq_head_doorbell(q->id(), facts_.stride)] = at.cq;
    *words.sq = q->tail();
    *words.cq = q->head();
  }
  keeper_ = std::make_unique<doorbell_keeper>(words_->as<std::uint32_t>(), facts_.stride, last,
                                              std::make_unique<page_writer>(std::move(registers)));
  machine_.add(keeper_.get());
}

io_queue::doorbell_words kmod_controller::registers_of(const pair& p) {
  return {reinterpret_cast<std::uint32_t*>(p.page + p.made.sq_doorbell),
          reinterpret_cast<std::uint32_t*>(p.page + p.made.cq_doorbell)};
}
io_queue::doorbell_words kmod_controller::words_of(std::uint32_t qid) const {
  auto* words = words_->as<std::uint32_t>();
  return {words + (w::sq_tail_doorbell(qid, facts_.stride) - w::k_reg_doorbells) / 4,
          words + (w::cq_head_doorbell(qid, facts_.stride) - w::k_reg_doorbells) / 4};
}

dev::storage_view kmod_controller::view() const {
  dev::storage_view v = shape_of(facts_, queue_count());
  if (read_only_) v.read_only = 1;
  return v;
}

dev::ring_view kmod_controller::queue_view(std::uint32_t queue) const {
  dev::ring_view v = queues_.at(queue)->view();
  v.nvme.shadow_tail = nullptr;
  v.nvme.tail_event = nullptr;
  if (keeper_ != nullptr) {
    v.nvme.sq_doorbell = nullptr;
    v.nvme.shadow_tail =
        words_->seen_as<std::uint32_t>() + (w::sq_tail_doorbell(v.id, facts_.stride) - w::k_reg_doorbells) / 4;
    v.nvme.cq_doorbell =
        words_->seen_as<std::uint32_t>() + (w::cq_head_doorbell(v.id, facts_.stride) - w::k_reg_doorbells) / 4;
    return v;
  }
  const pair& p = pairs_.at(v.id);
  v.nvme.sq_doorbell = reinterpret_cast<std::uint32_t*>(p.kernels_page + p.made.sq_doorbell);
  v.nvme.cq_doorbell = reinterpret_cast<std::uint32_t*>(p.kernels_page + p.made.cq_doorbell);
  return v;
}

// Without an IOMMU that translates all see the bus. Else each pin has addresses of its own, also for one drive.
std::shared_ptr<const void> kmod_controller::domain() const {
  static const std::shared_ptr<const void> machine = std::make_shared<int>();
  return module_.translated() ? domain_ : machine;
}

std::string kmod_controller::trouble() const {
  std::string what = module_.trouble();
  return what.empty() ? memory_->trouble() : what;
}

// By the watch's thread. The module has ended the drive's DMA, or never had to.
void kmod_controller::lose(const std::string& what) {
  log::warn("{}: {}", name_, what);
  // A GPU that has failed refuses copies; its kernels see nothing any more.
  try {
    for (const auto& q : queues_) q->fail(XIO_ERR_TRANSPORT, 0);
  } catch (const std::exception& e) {
    log::warn("{}: its queues could not be notified: {}", name_, e.what());
  }
}

// The watch goes first: what it would see from here on is our own doing.
void kmod_controller::stop() noexcept {
  watch_.reset();
  for (const auto& q : queues_) {
    try {
      q->fail(XIO_ERR_STATE, 0);
    } catch (const std::exception& e) {
      log::debug("while closing {}: {}", name_, e.what());
    }
  }
  for (const auto& q : queues_) q->stop();
}

void kmod_controller::close() noexcept {
  if (keeper_ != nullptr) machine_.remove(keeper_.get());
  stop();
  queues_.clear();
  keeper_.reset();
  words_.reset();
  memory_.reset();
}

// ---- whether it reaches the memory that kernels see
// ------------------------------------------------------------------

// With the first queue, by doorbells that the host writes, or by the words that a host thread carries there.
trial_result kmod_controller::try_page(void* page, std::uint64_t address) {
  const io_queue& q = *queues_.front();
  const io_queue::doorbell_words to = keeper_ != nullptr ? words_of(q.id()) : registers_of(pairs_.at(q.id()));
  const drive_memory known(static_cast<bus&>(*this), k_trial_bytes);
  return try_memory(
      facts_, [&](const w::sqe& command) { return queues_.front()->run_first(command, to, k_trial_limit); },
      {known.as<unsigned char>(), known.address()}, {static_cast<unsigned char*>(page), address}, gpu::payload());
}

void kmod_controller::check_reach(void* page, void* base, std::size_t bytes) {
  const trial_result heap = try_page(page, memory_->address_of(page, base, bytes));
  if (heap.verdict == trial_verdict::different)
    fail(XIO_ERR_UNSUPPORTED,
         "{} does not reach the memory that kernels see at {}; set XIO_HEAP_KIND=host, or turn on Resizable BAR "
         "(large_bar in xio-info --preflight). It was pinned, but the drive's commands ended on other memory: its "
         "driver has moved the memory, or a guest's addresses lead elsewhere",
         name_, base);
  if (heap.verdict == trial_verdict::unknown)
    log::warn("{}: whether it reaches the memory that kernels see could not be tried: {}", name_, heap.why);
  else if (gpu::has_device_memory())
    try_gpu_memory();
}

// A page of our own stands for what will be registered, which may hold data and is of another kind than the heap.
void kmod_controller::try_gpu_memory() {
  const gpu::buffer page(k_trial_bytes, gpu::place::device, k_register_page);
  try {
    memory_->map(page.data(), k_trial_bytes);
  } catch (const error& e) {
    log::debug("{}", e.what());  // registering will say that
    return;
  }
  const trial_result r = try_page(page.data(), memory_->address_of(page.data(), page.data(), k_trial_bytes));
  memory_->unmap(page.data(), k_trial_bytes, [] { return false; });
  if (r.verdict == trial_verdict::different)
    gpu_refusal_ = name_ +
                   " does not reach the GPU memory that kernels see, as was tried when it was opened; register host "
                   "memory, or turn on Resizable BAR (large_bar in xio-info --preflight)";
  if (!gpu_refusal_.empty()) log::warn("{}", gpu_refusal_);
}

std::uint64_t kmod_controller::map(void* base, std::size_t bytes) {
  if (!gpu_refusal_.empty() && gpu::locate(base).where == gpu::residence::device)
    fail(XIO_ERR_UNSUPPORTED, "{}", gpu_refusal_);
  return memory_->map(base, bytes);
}

// Commands that are under way now may name the memory; those that are posted later may not.
void kmod_controller::unmap(void* base, std::size_t bytes) {
  std::vector<std::pair<const io_queue*, std::uint64_t>> until;
  for (const auto& q : queues_) until.emplace_back(q.get(), q->issued());
  memory_->unmap(base, bytes, [until] {
    return std::ranges::any_of(until, [](auto& one) { return one.first->completed() < one.second; });
  });
}

// ---- memory of the module -------------------------------------------------------------------------------------------

void* kmod_controller::lend(std::size_t bytes, gpu::place where) {
  if (where == gpu::place::device && gpu::has_device_memory()) return lend_on_gpu(bytes);
  const kmod_module::memory m = module_.take_memory(bytes);
  void* seen = gpu::show_pages(m.base, m.bytes);
  if (seen == nullptr) {
    module_.give_memory_back(m);
    fail(XIO_ERR_UNSUPPORTED,
         "{}: the GPU's driver does not take queue memory of the kernel module; open the drive by vfio (nvme:)", name_);
  }
  lent_[m.base] = {m, {}, {m.handle, 0}, m.address, seen, std::make_unique<lost_pages>(m.base, m.bytes)};
  return m.base;
}

void* kmod_controller::lend_on_gpu(std::size_t bytes) {
  gpu::buffer memory(bytes, gpu::place::device, k_register_page, gpu::purpose::completions);
  void* base = memory.data();
  const memory::device_view view = memory::view_for_device(base, bytes);
  const kmod_module::pin pin = module_.pin_dmabuf(view.file.get(), true);
  for (const kmod_module::run& r : pin.runs) {
    if (view.offset < r.offset || view.offset + bytes > r.offset + r.bytes) continue;
    const std::uint64_t address = r.address + (view.offset - r.offset);
    if (address % k_register_page != 0) break;
    lent_[base] = {{}, std::move(memory), {pin.handle, view.offset}, address, base, nullptr};
    return base;
  }
  module_.release(pin.handle);
  fail(XIO_ERR_UNSUPPORTED,
       "{}: {} bytes of queue memory on the GPU do not lie in one piece of the bus; ask for shallower queues, or leave "
       "1 and 2 out of XIO_MEMORY_MODE",
       name_, bytes);
}

void kmod_controller::take_back(void* base) {
  const auto found = lent_.find(base);
  if (found == lent_.end()) return;
  found->second.watch.reset();  // other mappings may come there
  if (found->second.on_gpu.data() != nullptr)
    module_.release(found->second.place.handle);
  else if (gpu::hide_pages(base))
    module_.give_memory_back(found->second.memory);
  else
    log::warn("{}: {} bytes of queue memory stay until the process ends: a kernel that still runs keeps them", name_,
              found->second.memory.bytes);
  lent_.erase(found);
}

// ---- queues ---------------------------------------------------------------------------------------------------------

kmod_module::queue_place kmod_controller::place_at(std::uint64_t address) const {
  for (const auto& [base, l] : lent_)
    if (l.address == address) return l.place;
  fail(XIO_ERR_INTERNAL, "{}: no queue memory lies at {:#x}; this is a bug of XIO", name_, address);
}

std::uint32_t kmod_controller::create_queues(std::uint32_t, std::uint64_t sq, std::uint32_t sq_entries,
                                             std::uint64_t cq, std::uint32_t cq_entries) {
  const xio_kmod_queue_pair made = module_.make_queue_pair(place_at(sq), sq_entries, place_at(cq), cq_entries);
  try {
    unsigned char* page = module_.map_doorbells(made);
    pairs_[made.queue] = {made, page, static_cast<unsigned char*>(gpu::map_registers(page, k_register_page)),
                          std::make_unique<lost_pages>(page, k_register_page)};
  } catch (...) {
    module_.release(made.handle);
    throw;
  }
  return made.queue;
}

// The module ends their commands: when it has released the pair, none touches memory.
void kmod_controller::delete_queues(std::uint32_t qid) noexcept {
  const auto found = pairs_.find(qid);
  if (found == pairs_.end()) return;
  pair& p = found->second;
  p.watch.reset();  // another mapping may come there
  const bool free = p.kernels_page == nullptr || gpu::unmap_registers(p.page);
  module_.release(p.made.handle);
  if (free)
    module_.calls().unmap(p.page, k_register_page);
  else
    log::warn("{}: the doorbells of queue {} stay mapped: a kernel that still runs keeps them", name_, qid);
  pairs_.erase(found);
}

}  // namespace xio::nvme
