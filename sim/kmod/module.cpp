// SPDX-License-Identifier: MIT
#include "kmod/module.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "kmod/buffers.hpp"

namespace kmod_sim {

using xio::model::nvme::dma_map;

namespace {

// kernel/xio/xio.h.
constexpr std::uint32_t k_most_objects = 256;
constexpr std::uint64_t k_most_block = 4 << 20, k_most_memory = 64 << 20;
constexpr std::uint64_t k_page = 4096;

bool any(const __u64 (&reserved)[2]) { return reserved[0] != 0 || reserved[1] != 0; }

}  // namespace

// Never destroyed: the drive's thread, and exit handlers that close drives, use it.
kernel_module* kernel_module::current() {
  static kernel_module* const made = session() == nullptr ? nullptr : new kernel_module(*session());
  return made;
}

int kernel_module::call(std::uint64_t owner, unsigned long request, void* argument) {
  const std::lock_guard hold(lock_);
  try {
    switch (request) {
      case XIO_KMOD_INFO: return info(*static_cast<xio_kmod_info*>(argument));
      case XIO_KMOD_PIN: return pin(owner, *static_cast<xio_kmod_pin*>(argument));
      case XIO_KMOD_SEGMENTS: return segments(owner, *static_cast<xio_kmod_segments*>(argument));
      case XIO_KMOD_MEMORY: return memory(owner, *static_cast<xio_kmod_memory*>(argument));
      case XIO_KMOD_RELEASE: return release(owner, *static_cast<const xio_kmod_release*>(argument));
      case XIO_KMOD_QUEUE_PAIR: return queue_pair(owner, *static_cast<xio_kmod_queue_pair*>(argument));
      case XIO_KMOD_IDENTIFY: {
        auto& a = *static_cast<xio_kmod_identify*>(argument);
        return identify(a, reinterpret_cast<std::uint64_t*>(&a.cap));
      }
      default: return ENOTTY;
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "simulated kernel module: %s\n", e.what());
    return ENODEV;
  }
}

int kernel_module::info(xio_kmod_info& a) const {
  const xio_kmod_info zero{};
  if (std::memcmp(&a, &zero, sizeof a) != 0) return EINVAL;
  a.version = XIO_KMOD_VERSION + (settings_.module == "other" ? 1 : 0);
  a.features = XIO_KMOD_HAS_PIN | XIO_KMOD_HAS_MEMORY | XIO_KMOD_HAS_QUEUE_PAIR;
  if (settings_.module != "older") a.features |= XIO_KMOD_HAS_PINNED_QUEUES;
  a.max_objects = k_most_objects;
  a.max_segments = settings_.segments;
  a.max_memory = k_most_memory;
  a.max_block = k_most_block;
  return 0;
}

// kernel/xio/device.c. The bus addresses count as those of an IOMMU; raw: registers and queues.
int kernel_module::claim(const xio_kmod_pci& device, bool raw, std::uint32_t* out) {
  if (device.reserved != 0 || device.slot > 31 || device.function > 7) return EINVAL;
  char name[32];
  std::snprintf(name, sizeof name, "%04x:%02x:%02x.%x", device.domain, device.bus, device.slot, device.function);
  std::uint32_t number = 0;
  while (number < k_drives && std::strcmp(name, k_bdf[number]) != 0) ++number;
  if (number == k_drives) return ENODEV;
  if (raw && settings_.module == "unprivileged") return EPERM;
  if (drives_[number] == nullptr) drives_[number] = std::make_unique<drive>(settings_, number);
  if (out != nullptr) *out = number;
  return 0;
}

int kernel_module::add(object&& o, std::uint32_t* handle) {
  const auto held = std::ranges::count_if(objects_, [&](const auto& one) { return one.second.owner == o.owner; });
  if (held >= k_most_objects) return ENOSPC;
  *handle = next_++;
  objects_.emplace(*handle, std::move(o));
  return 0;
}

kernel_module::object* kernel_module::find(std::uint64_t owner, std::uint32_t handle, kind what) {
  const auto found = objects_.find(handle);
  return found == objects_.end() || found->second.owner != owner || found->second.what != what ? nullptr
                                                                                               : &found->second;
}

// ---- what the drive sees --------------------------------------------------------------------------------------------

// Pieces in a shuffled order, each with a page behind it that nothing lies in.
int kernel_module::show_to_drive(object& o, int file, std::uint64_t offset, std::uint64_t bytes,
                                 std::uint64_t piece_bytes, dma_map::memory as) {
  if (piece_bytes == 0 || piece_bytes > bytes) piece_bytes = bytes;
  const std::size_t count = (bytes + piece_bytes - 1) / piece_bytes;
  const std::uint64_t room = piece_bytes + k_page;
  void* whole = mmap(nullptr, count * room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (whole == MAP_FAILED) return ENOMEM;
  o.whole = static_cast<unsigned char*>(whole);
  o.whole_bytes = count * room;
  std::vector<std::size_t> places(count);
  std::iota(places.begin(), places.end(), 0);
  std::shuffle(places.begin(), places.end(), random_);
  for (std::size_t i = 0; i < count; ++i) {
    unsigned char* base = o.whole + places[i] * room;
    const std::uint64_t size = std::min(piece_bytes, bytes - i * piece_bytes);
    if (mmap(base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
             static_cast<off_t>(offset + i * piece_bytes)) == MAP_FAILED) {
      hide_from_drive(o);
      return ENOMEM;
    }
    o.pieces.push_back({base, drives_[o.device]->controller().dma().add(base, size, as), size});
  }
  return 0;
}

void kernel_module::hide_from_drive(object& o) {
  for (const piece& p : o.pieces)
    if (!drives_[o.device]->controller().take_away(p.base))
      std::fprintf(stderr, "simulated kernel module: a buffer was released that the drive still uses\n");
  o.pieces.clear();
  if (o.whole != nullptr) munmap(o.whole, o.whole_bytes);
  o.whole = nullptr;
}

// ---- calls ----------------------------------------------------------------------------------------------------------

int kernel_module::pin(std::uint64_t owner, xio_kmod_pin& a) {
  if ((a.flags & ~XIO_KMOD_PIN_DEVICE) != 0 || a.reserved0 != 0 || any(a.reserved)) return EINVAL;
  buffer b;
  std::uint32_t device = 0;
  if (const int failed = find_buffer(a.dmabuf, b); failed != 0) return failed;
  if (const int failed = claim(a.device, false, &device); failed != 0) return failed;
  const bool on_device = b.of_gpu && !settings_.gpu_in_system_memory;
  const std::uint64_t piece = settings_.piece == 0 ? b.bytes : settings_.piece;
  if ((b.bytes + piece - 1) / piece > settings_.segments) return E2BIG;
  if ((a.flags & XIO_KMOD_PIN_DEVICE) != 0 && !on_device) return EREMOTEIO;
  // The drive gets other memory, as from an exporter that has moved its buffer.
  if (settings_.pins == "elsewhere" || (settings_.pins == "later_elsewhere" && ++pinned_ > 1)) {
    b.file = xio::unique_fd(memfd_create("elsewhere", MFD_CLOEXEC));
    b.offset = 0;
    if (!b.file || ftruncate(b.file.get(), static_cast<off_t>(b.bytes)) != 0) return ENOMEM;
  }
  object o{owner, kind::pin, device};
  // Queues may lie in it as well as data.
  const auto as = dma_map::memory::host;
  if (const int failed = show_to_drive(o, b.file.get(), b.offset, b.bytes, piece, as); failed != 0) return failed;
  const auto count = static_cast<__u32>(o.pieces.size());
  if (const int failed = add(std::move(o), &a.handle); failed != 0) return failed;
  a.segments = count;
  a.state = (on_device ? XIO_KMOD_PINNED_DEVICE : 0) | XIO_KMOD_PINNED_TRANSLATED;
  a.bytes = b.bytes;
  return 0;
}

int kernel_module::segments(std::uint64_t owner, xio_kmod_segments& a) {
  if (a.reserved0 != 0 || a.reserved != 0 || a.count > settings_.segments) return EINVAL;
  const object* o = find(owner, a.handle, kind::pin);
  if (o == nullptr) return ENOENT;
  auto* to = reinterpret_cast<xio_kmod_segment*>(static_cast<std::uintptr_t>(a.array));
  std::uint32_t written = 0;
  for (; written < a.count && std::size_t{a.first} + written < o->pieces.size(); ++written) {
    const piece& p = o->pieces[a.first + written];
    to[written] = {p.bus, p.bytes};
  }
  a.count = written;
  return 0;
}

int kernel_module::memory(std::uint64_t owner, xio_kmod_memory& a) {
  if (any(a.reserved) || a.bytes == 0 || a.bytes % k_page != 0 || a.bytes > k_most_block) return EINVAL;
  std::uint32_t device = 0;
  if (const int failed = claim(a.device, false, &device); failed != 0) return failed;
  std::uint64_t held = 0;
  for (const auto& [handle, o] : objects_)
    if (o.owner == owner && o.what == kind::memory) held += o.bytes;
  if (a.bytes > k_most_memory - held) return ENOSPC;
  object o{owner, kind::memory, device, xio::unique_fd(memfd_create("xio-queue", MFD_CLOEXEC)), a.bytes};
  if (!o.file || ftruncate(o.file.get(), static_cast<off_t>(a.bytes)) != 0) return ENOMEM;
  const int file = o.file.get();
  if (const int failed = show_to_drive(o, file, 0, a.bytes, 0, dma_map::memory::host); failed != 0) return failed;
  a.address = o.pieces[0].bus;
  a.state = XIO_KMOD_PINNED_TRANSLATED;
  if (const int failed = add(std::move(o), &a.handle); failed != 0) return failed;
  a.offset = std::uint64_t{a.handle} << k_offset_shift;
  return 0;
}

// kernel/xio/queue_pair.c: live memory with room for the entries, or a pinned buffer in which they are one piece; one
// queue to each.
int kernel_module::place_queue(std::uint64_t owner, std::uint32_t handle, std::uint64_t offset, std::uint64_t bytes,
                               std::uint64_t* bus) const {
  const auto found = objects_.find(handle);
  if (found == objects_.end() || found->second.owner != owner || found->second.what == kind::queue_pair) return ENOENT;
  const object& o = found->second;
  if (o.what == kind::memory && (offset != 0 || bytes > o.bytes)) return EINVAL;
  if (o.users != 0) return EBUSY;
  std::uint64_t at = 0;
  for (const piece& p : o.pieces) {
    if (offset < at + p.bytes) {
      if (offset % k_page != 0 || bytes > at + p.bytes - offset) return EINVAL;
      *bus = p.bus + (offset - at);
      return 0;
    }
    at += p.bytes;
  }
  return EINVAL;
}

int kernel_module::queue_pair(std::uint64_t owner, xio_kmod_queue_pair& a) {
  std::uint32_t device = 0;
  if (const int failed = claim(a.device, true, &device); failed != 0) return failed;
  const auto is_place = [&](std::uint32_t handle) {
    return find(owner, handle, kind::memory) != nullptr || find(owner, handle, kind::pin) != nullptr;
  };
  if (!is_place(a.sq_memory) || !is_place(a.cq_memory)) return ENOENT;
  if (a.sq_memory == a.cq_memory) return EINVAL;
  for (const std::uint32_t handle : {a.sq_memory, a.cq_memory})
    if (objects_.at(handle).device != device) return EINVAL;
  std::uint64_t sq_bus = 0, cq_bus = 0;
  const std::uint64_t sq_bytes = std::uint64_t{a.sq_entries} * 64, cq_bytes = std::uint64_t{a.cq_entries} * 16;
  if (const int bad = place_queue(owner, a.sq_memory, a.sq_offset, sq_bytes, &sq_bus); bad != 0) return bad;
  if (const int bad = place_queue(owner, a.cq_memory, a.cq_offset, cq_bytes, &cq_bus); bad != 0) return bad;
  object o{owner, kind::queue_pair, device};
  o.sq = a.sq_memory;
  o.cq = a.cq_memory;
  object &sq = objects_.at(o.sq), &cq = objects_.at(o.cq);
  drive& d = *drives_[device];
  if (const int failed = d.create(sq_bus, a.sq_entries, cq_bus, a.cq_entries, &o.queue); failed != 0) return failed;
  const std::uint32_t qid = o.queue;
  // As the module: there is one page to map, or none.
  if (xio::wire::nvme::sq_tail_doorbell(qid, settings_.stride) / k_page !=
      xio::wire::nvme::cq_head_doorbell(qid, settings_.stride) / k_page) {
    d.remove(qid);
    return EOPNOTSUPP;
  }
  if (const int failed = add(std::move(o), &a.handle); failed != 0) {
    d.remove(qid);
    return failed;
  }
  ++sq.users;
  ++cq.users;
  a.queue = qid;
  a.offset = std::uint64_t{a.handle} << k_offset_shift;
  a.sq_doorbell = xio::wire::nvme::sq_tail_doorbell(qid, settings_.stride) % k_page;
  a.cq_doorbell = xio::wire::nvme::cq_head_doorbell(qid, settings_.stride) % k_page;
  return 0;
}

int kernel_module::identify(const xio_kmod_identify& a, std::uint64_t* cap) {
  if (a.reserved != 0 || a.cns > 2) return EINVAL;
  std::uint32_t device = 0;
  if (const int failed = claim(a.device, true, &device); failed != 0) return failed;
  if (settings_.lost_after != 0 && ++identified_ > settings_.lost_after) return ENODEV;
  *cap = drives_[device]->cap();
  return drives_[device]->identify(a.cns, a.nsid, reinterpret_cast<void*>(static_cast<std::uintptr_t>(a.data)));
}

// ---- ends -----------------------------------------------------------------------------------------------------------

int kernel_module::release(std::uint64_t owner, const xio_kmod_release& a) {
  if (a.reserved != 0) return EINVAL;
  const auto found = objects_.find(a.handle);
  if (found == objects_.end() || found->second.owner != owner) return ENOENT;
  if (found->second.users != 0) return EBUSY;
  end(a.handle);
  return 0;
}

void kernel_module::end(std::uint32_t handle) {
  object& o = objects_.at(handle);
  if (o.what == kind::queue_pair) {
    drives_[o.device]->remove(o.queue);
    --objects_.at(o.sq).users;
    --objects_.at(o.cq).users;
  }
  hide_from_drive(o);
  objects_.erase(handle);
}

// Queue pairs first, so that no command outlives the memory that it names.
void kernel_module::close(std::uint64_t owner) {
  const std::lock_guard hold(lock_);
  for (const bool pairs : {true, false}) {
    std::vector<std::uint32_t> ours;
    for (const auto& [handle, o] : objects_)
      if (o.owner == owner && (o.what == kind::queue_pair) == pairs) ours.push_back(handle);
    for (const std::uint32_t handle : ours) end(handle);
  }
}

void* kernel_module::map(std::uint64_t owner, void* at, std::size_t bytes, int protection, int flags,
                         std::uint64_t offset) {
  const std::lock_guard hold(lock_);
  const auto found = objects_.find(static_cast<std::uint32_t>(offset >> k_offset_shift));
  const std::uint64_t inside = offset & ((std::uint64_t{1} << k_offset_shift) - 1);
  int bad = 0;
  if ((flags & MAP_TYPE) != MAP_SHARED)
    bad = EINVAL;
  else if ((protection & PROT_EXEC) != 0)
    bad = EACCES;
  else if (found == objects_.end() || found->second.owner != owner)
    bad = ENOENT;
  else if (inside + bytes > (found->second.what == kind::memory       ? found->second.bytes
                             : found->second.what == kind::queue_pair ? k_page
                                                                      : 0))
    bad = EINVAL;
  if (bad != 0) {
    errno = bad;
    return MAP_FAILED;
  }
  const object& o = found->second;
  if (o.what == kind::memory) return mmap(at, bytes, protection, flags, o.file.get(), static_cast<off_t>(inside));
  const std::uint64_t page = xio::wire::nvme::sq_tail_doorbell(o.queue, settings_.stride) / k_page * k_page;
  return mmap(at, bytes, protection, flags, drives_[o.device]->registers(), static_cast<off_t>(page + inside));
}

}  // namespace kmod_sim
