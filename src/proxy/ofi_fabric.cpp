// SPDX-License-Identifier: MIT
#include "proxy/ofi_fabric.hpp"

#include <cstring>

#include "base/error.hpp"
#include "base/log.hpp"
#include "proxy/ofi_trial.hpp"

namespace xio::proxy {

namespace {

using ofi::k_immediates;

constexpr std::uint64_t k_ring_words = k_immediates + 1;
constexpr unsigned char k_ofi_magic[8] = {'X', 'I', 'O', 'F', 'A', 'B', 'R', '1'};

// A device address: this head, the provider's name (as many characters), the endpoint's address, and each memory that
// peers may reach.
struct ofi_address_head {
  unsigned char magic[8];
  std::uint8_t name_bytes, address_bytes, memories, pad;
  std::uint32_t pe;
};
// Of one queue pair: where its immediates go.
struct queue_address {
  unsigned char magic[8];
  std::uint64_t at, key;
};

std::uint64_t access_of(std::uint32_t allowed) {
  std::uint64_t access = FI_READ | FI_WRITE;
  if ((allowed & remote_read) != 0) access |= FI_REMOTE_READ;
  if ((allowed & (remote_write | remote_atomic)) != 0) access |= FI_REMOTE_WRITE;
  // Fetching atomics read, too.
  if ((allowed & remote_atomic) != 0) access |= FI_REMOTE_READ;
  return access;
}

constexpr std::uint32_t k_remote = remote_read | remote_write | remote_atomic;

template <class T>
void append(device_address& to, const T* from, std::size_t count) {
  const auto bytes = std::as_bytes(std::span(from, count));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

// A NIC writes aligned words in one piece; a CPU that copies out of a stream may not.
bool writes_words_whole(const ofi::traits& t) { return t.provider == "cxi" || t.provider.starts_with("verbs"); }

}  // namespace

ofi_fabric::ofi_fabric(const payload_agent& payload, const ofi::library& l, ofi::info_list domain,
                       ofi_settings settings)
    : settings_(std::move(settings)),
      by_(l, std::move(domain), static_cast<std::size_t>(settings_.pes)),
      name_("libfabric " + by_.what().provider + " " + by_.what().domain),
      receiver_(by_),
      memory_{payload, key_table(settings_.seed), {}} {
  peers_.resize(static_cast<std::size_t>(settings_.pes));
  peers_[static_cast<std::size_t>(settings_.pe)].address = receiver_.address();
  try_out();
}

ofi_fabric::~ofi_fabric() {
  groups_.clear();
  // Memory goes before the endpoint that it is bound to.
  memory_.registrations.clear();
}

// --- Memory ------------------------------------------------------------------------------------------

key_pair ofi_fabric::register_memory(void* base, std::uint64_t bytes, std::uint32_t allowed) {
  const std::uint32_t key = memory_.keys.add(
      region{reinterpret_cast<std::uint64_t>(base), bytes, static_cast<unsigned char*>(base), allowed});
  if (key == 0)
    fail(XIO_ERR_ARG, "{} bytes at {} cannot be registered with {}: the range is empty or leaves the address space",
         bytes, base, name_);
  try {
    const ofi::memory_range range = range_of(base, bytes);
    ofi::owned<fid_mr> mr;
    if ((allowed & k_remote) != 0 || by_.what().local_keys || range.of != FI_HMEM_SYSTEM)
      mr = by_.register_memory(range, access_of(allowed), receiver_.handle());
    memory_.registrations.emplace(key, std::move(mr));
  } catch (...) {
    memory_.keys.remove(key);
    throw;
  }
  list_own_memory();
  return {key, key};
}

void ofi_fabric::unregister_memory(const key_pair& keys) {
  memory_.keys.remove(keys.lkey);
  memory_.registrations.erase(keys.lkey);
  list_own_memory();
}

// Throws where it is a GPU's and the provider would not reach it, or another place in its stead.
ofi::memory_range ofi_fabric::range_of(void* base, std::uint64_t bytes) const {
  if (settings_.gpu == FI_HMEM_SYSTEM) return {base, bytes};
  const gpu::location at = settings_.locate(base);
  if (at.where != gpu::residence::device) return {base, bytes};
  if (!by_.what().gpu_memory)
    fail(XIO_ERR_UNSUPPORTED,
         "{} bytes at {} are GPU memory, and {} of {} registers host memory alone; set XIO_HEAP_KIND=host and register "
         "host memory, or name a libfabric that was built for this GPU by XIO_FABRIC_LIBRARY",
         bytes, base, name_, by_.lib().name());
  const std::string setting = ofi::unsafe_inside(by_.what().provider, settings_.gpu);
  if (!setting.empty() && at.base != base)
    fail(XIO_ERR_CONFIG,
         "{} bytes at {} are inside an allocation of the GPU ({}), and with {} libfabric reads and writes the start of "
         "the allocation in their stead; unset it, or set XIO_HEAP_KIND=host",
         bytes, base, at.base, setting);
  return {base, bytes, settings_.gpu, at.device};
}

// The memory that peers may reach, in the form in which they get it.
void ofi_fabric::list_own_memory() {
  memory_list& list = peers_[static_cast<std::size_t>(settings_.pe)].memory;
  list.clear();
  for (const auto& [key, mr] : memory_.registrations) {
    const region* r = memory_.keys.region_of(key);
    if (r != nullptr && mr != nullptr && (r->allowed & k_remote) != 0)
      list.push_back({r->base, r->bytes, fi_mr_key(mr.get()), key, r->allowed & k_remote});
  }
}

// --- Addresses ---------------------------------------------------------------------------------------

device_address ofi_fabric::get_address() {
  const peer& me = peers_[static_cast<std::size_t>(settings_.pe)];
  const std::string& provider = by_.what().provider;
  ofi_address_head h{};
  std::memcpy(h.magic, k_ofi_magic, sizeof k_ofi_magic);
  h.name_bytes = static_cast<std::uint8_t>(provider.size());
  h.address_bytes = static_cast<std::uint8_t>(me.address.size());
  h.memories = static_cast<std::uint8_t>(me.memory.size());
  h.pe = static_cast<std::uint32_t>(settings_.pe);
  device_address out;
  append(out, &h, 1);
  append(out, provider.data(), provider.size());
  append(out, me.address.data(), me.address.size());
  append(out, me.memory.data(), me.memory.size());
  if (out.size() > k_device_address_most)
    fail(XIO_ERR_UNSUPPORTED, "{} has an address of {} bytes, too long for the exchange; use another provider", name_,
         me.address.size());
  return out;
}

void ofi_fabric::connect_peers(const std::vector<device_address>& all) {
  const auto bad = [](std::size_t pe, const char* why) {
    fail(XIO_ERR_PEER, "PE {} sent {}; run the same XIO with the same XIO_FABRIC_PROVIDER on every PE", pe, why);
  };
  if (all.size() != peers_.size()) bad(all.size(), "an address too few or too many");
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    ofi_address_head h{};
    std::memcpy(&h, all[pe].data(), std::min(sizeof h, all[pe].size()));
    if (std::memcmp(h.magic, k_ofi_magic, sizeof k_ofi_magic) != 0) bad(pe, "no address of the libfabric carrier");
    if (h.pe != pe) bad(pe, "another PE's address");
    const std::size_t memory = h.memories * sizeof(ofi::remote_memory);
    if (h.address_bytes == 0 || all[pe].size() != sizeof h + h.name_bytes + h.address_bytes + memory)
      bad(pe, "an address that is cut");
    const auto* at = reinterpret_cast<const char*>(all[pe].data()) + sizeof h;
    if (std::string_view(at, h.name_bytes) != by_.what().provider) bad(pe, "the address of another provider");
    at += h.name_bytes;
    if (h.address_bytes != receiver_.address().size()) bad(pe, "an address of another form");
    if (pe == static_cast<std::size_t>(settings_.pe)) continue;
    peers_[pe].address.assign(at, at + h.address_bytes);
    peers_[pe].memory.resize(h.memories);
    std::memcpy(peers_[pe].memory.data(), at + h.address_bytes, memory);
    for (const ofi::remote_memory& r : peers_[pe].memory)
      if (r.bytes == 0 || r.base + r.bytes < r.base) bad(pe, "memory that cannot be");
  }
}

fi_addr_t ofi_fabric::resolve(int pe) {
  peer& p = peers_[static_cast<std::size_t>(pe)];
  if (p.at == FI_ADDR_UNSPEC) p.at = by_.add_peer(p.address.data());
  return p.at;
}

// --- Queue pairs -------------------------------------------------------------------------------------

ofi_fabric::group ofi_fabric::make_group() {
  group g;
  g.numbers.resize(peers_.size());
  g.taken.resize(peers_.size());
  g.most.resize(peers_.size());
  g.words.resize(peers_.size() * k_ring_words);
  g.key = by_.register_memory({g.words.data(), g.words.size() * sizeof g.words[0]},
                              FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, receiver_.handle());
  g.sender = std::make_shared<ofi::endpoint>(by_);
  return g;
}

// All queue pairs that are made together get their addresses, PE by PE, before the first is connected. So those of one
// ctx come into the same group.
ofi_fabric::group& ofi_fabric::group_without(int pe) {
  const auto found = std::ranges::find_if(
      groups_, [&](const group& g) { return !g.is_whole && g.numbers[static_cast<std::size_t>(pe)] == 0; });
  if (found != groups_.end()) return *found;
  groups_.push_back(make_group());
  return groups_.back();
}

ofi_fabric::group* ofi_fabric::group_of(std::uint32_t number) {
  const auto found = std::ranges::find_if(
      groups_, [&](const group& g) { return std::ranges::find(g.numbers, number) != g.numbers.end(); });
  return found == groups_.end() ? nullptr : &*found;
}

device_address ofi_fabric::get_queue_address(std::uint32_t number, int pe) {
  if (group_of(number) != nullptr)
    fail(XIO_ERR_STATE, "the address of queue pair {} of {} for PE {} was given out before", number, name_, pe);
  group& g = group_without(pe);
  const auto at = static_cast<std::size_t>(pe);
  g.numbers[at] = number;
  ++g.members;
  g.taken[at] = g.most[at] = 0;
  std::uint64_t* const ring = g.words.data() + at * k_ring_words;
  std::fill_n(ring, k_ring_words, 0);
  queue_address q{};
  std::memcpy(q.magic, k_ofi_magic, sizeof k_ofi_magic);
  q.at = by_.what().virtual_addresses ? reinterpret_cast<std::uint64_t>(ring) : at * k_ring_words * sizeof *ring;
  q.key = fi_mr_key(g.key.get());
  device_address out;
  append(out, &q, 1);
  return out;
}

std::unique_ptr<executor> ofi_fabric::connect(std::uint32_t number, int pe, const device_address& remote,
                                              std::uint32_t remote_number) {
  group* g = group_of(number);
  if (g == nullptr)
    fail(XIO_ERR_STATE, "queue pair {} of {} is connected to PE {} before its address was given out", number, name_,
         pe);
  queue_address q{};
  if (remote.size() == sizeof q) std::memcpy(&q, remote.data(), sizeof q);
  if (std::memcmp(q.magic, k_ofi_magic, sizeof k_ofi_magic) != 0)
    fail(XIO_ERR_PEER, "PE {} describes its queue pair in a form this XIO does not know; run the same XIO on every PE",
         pe);
  g->is_whole = true;
  offer_room(*g, static_cast<std::size_t>(pe));
  ofi::way w{g->sender,
             resolve(pe),
             &memory_,
             &peers_[static_cast<std::size_t>(pe)].memory,
             {q.at, q.key},
             writes_words_whole(by_.what()),
             settings_.patience,
             settings_.rnr_retries,
             fmt::format("{} queue pair {} <-> {} of PE {}", by_.name(), number, remote_number, pe)};
  return std::make_unique<ofi::executor>(std::move(w));
}

// Returns its group if that has no member left.
ofi_fabric::group* ofi_fabric::take_out(std::uint32_t number) {
  group* g = group_of(number);
  if (g == nullptr) return nullptr;
  std::ranges::replace(g->numbers, number, std::uint32_t{0});
  return --g->members == 0 ? g : nullptr;
}

void ofi_fabric::forget(std::uint32_t number) {
  if (const group* g = take_out(number)) groups_.remove_if([&](const group& x) { return &x == g; });
}

// Nobody waits here: what is under way to a PE that was excluded ends, or is cut off, in some later turn.
void ofi_fabric::cut_off(std::uint32_t number) {
  if (group* g = take_out(number)) {
    g->until = run_clock::now() + ofi::endpoint::k_drain;
    ++parted_;
  }
}

bool ofi_fabric::close_parted() {
  const auto now = run_clock::now();
  const std::size_t closed = groups_.remove_if([&](group& g) {
    if (g.members != 0 || (g.sender->under_way() != 0 && now < g.until)) return false;
    g.sender->hurry();
    return true;
  });
  parted_ -= closed;
  return closed != 0;
}

// --- Turns -------------------------------------------------------------------------------------------

// Words of immediates come in order, each with its number in its upper half.
bool ofi_fabric::take_immediates(group& g, std::size_t pe) {
  std::uint64_t* const ring = g.words.data() + pe * k_ring_words;
  bool any = false;
  for (;; any = true) {
    const std::uint64_t nth = g.taken[pe];
    const std::uint64_t word = __atomic_load_n(ring + nth % k_immediates, __ATOMIC_ACQUIRE);
    const auto value = static_cast<std::uint32_t>(word);
    if (word != ofi::immediate_word(nth, value) || !settings_.on_immediate ||
        !settings_.on_immediate(g.numbers[pe], value, 0))
      return any;
    ++g.taken[pe];
  }
}

// The sender reads this word.
void ofi_fabric::offer_room(group& g, std::size_t pe) {
  if (!settings_.room || g.most[pe] - g.taken[pe] >= k_immediates / 2) return;
  const std::uint64_t most = std::min(settings_.room(g.numbers[pe]), g.taken[pe] + k_immediates);
  if (most <= g.most[pe]) return;
  g.most[pe] = most;
  __atomic_store_n(g.words.data() + pe * k_ring_words + k_immediates, most, __ATOMIC_RELEASE);
}

bool ofi_fabric::poll() {
  bool any = receiver_.poll();
  if (receiver_.is_lost()) failed_.store(true, std::memory_order_release);
  if (parted_ != 0) any |= close_parted();
  for (group& g : groups_) {
    any |= g.sender->poll();
    for (std::size_t pe = 0; pe < g.numbers.size(); ++pe) {
      if (g.numbers[pe] == 0) continue;
      any |= take_immediates(g, pe);
      if (g.taken[pe] != 0) offer_room(g, pe);
    }
  }
  return any;
}

void ofi_fabric::try_out() {
  const ofi::trial_result r = ofi::try_ops(*this, settings_.pe, name_);
  if (!r.ordered) {
    by_.distrust_order();
    log::warn("{} does not keep the order that it announces; ops wait for those before them", name_);
  }
  atomics_ = r.atomics;
  const ofi::traits& t = by_.what();
  const char* const memory = settings_.gpu == FI_HMEM_SYSTEM ? "" : t.gpu_memory ? ", GPU memory" : ", no GPU memory";
  summary_ = fmt::format("{} keys, {} addresses, {} messages under way, atomics {}, order {}{}",
                         t.keys_by_provider ? "the provider's" : "own", t.virtual_addresses ? "virtual" : "offset",
                         t.under_way, r.text, r.ordered ? "as announced" : "by waiting", memory);
  log::info("rdma: {} by {}: {}", name_, by_.lib().name(), summary_);
}

}  // namespace xio::proxy
