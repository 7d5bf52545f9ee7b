// SPDX-License-Identifier: MIT
#include "transport/nvme/kmod_memory.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "gpu/memory.hpp"
#include "memory/dmabuf.hpp"

namespace xio::nvme {

namespace {

constexpr std::uint64_t k_page = 4096;  // of the drive: CC.MPS is 0

}  // namespace

// The queues have ended: no command names anything.
kmod_memory::~kmod_memory() {
  for (const pinned& p : pinned_) module_.release(p.handle);
  for (const leaving& l : leaving_) module_.release(l.handle);
}

run_list::run_list(std::vector<dev::bus_run> runs)
    : runs_(std::move(runs)), rows_(runs_.size() * sizeof(dev::bus_run), gpu::place::device) {
  gpu::copy(rows_.data(), runs_.data(), runs_.size() * sizeof(dev::bus_run));
}

std::shared_ptr<const run_list> run_list::of(std::vector<dev::bus_run> runs) {
  static std::mutex lock;
  // Never destroyed: an exit handler may open a drive.
  static auto& known = *new std::vector<std::weak_ptr<const run_list>>;
  const auto same = [&](const run_list& other) {
    return std::equal(runs.begin(), runs.end(), other.runs().begin(), other.runs().end(),
                      [](auto& a, auto& b) { return a.offset == b.offset && a.address == b.address; });
  };
  const std::lock_guard hold(lock);
  std::erase_if(known, [](auto& one) { return one.expired(); });
  for (const auto& one : known)
    if (auto list = one.lock(); list != nullptr && same(*list)) return list;
  auto made = std::make_shared<const run_list>(std::move(runs));
  known.push_back(made);
  return made;
}

// From the page that base is in: offsets of runs count from there.
kmod_memory::pinned kmod_memory::place(const kmod_module::pin& pin, std::uint64_t offset, void* base,
                                       std::size_t bytes) const {
  const std::uint64_t in_page = offset % k_page, first = offset - in_page, last = offset + bytes;
  std::vector<dev::bus_run> runs;
  std::uint64_t covered = first;
  for (const kmod_module::run& r : pin.runs) {
    if (r.offset + r.bytes <= covered || r.offset >= last) continue;
    if (r.address % k_page != r.offset % k_page || r.offset % k_page != 0)
      fail(XIO_ERR_UNSUPPORTED,
           "{}: the {} bytes at {} lie on the bus in parts that are no whole pages; register memory in whole pages of "
           "{} bytes",
           name_, bytes, base, k_page);
    runs.push_back({covered - first, r.address + (covered - r.offset)});
    covered = r.offset + r.bytes;
  }
  if (covered < last)
    fail(XIO_ERR_IO, "{}: the kernel module pinned a buffer that ends before the {} bytes at {}; register it again",
         name_, bytes, base);
  if (runs.size() == 1) return {base, bytes, pin.handle, runs[0].address + in_page, nullptr, 1, false};
  return {base, bytes, pin.handle, dev::k_in_runs | in_page, run_list::of(std::move(runs)), 1, false};
}

std::uint64_t kmod_memory::map(void* base, std::size_t bytes) {
  const std::lock_guard hold(lock_);
  release_unused();
  for (pinned& p : pinned_) {
    if (p.base != base || p.bytes != bytes) continue;
    ++p.users;
    return p.address;
  }
  const memory::device_view view = memory::view_for_device(base, bytes);
  const kmod_module::pin pin = module_.pin_dmabuf(view.file.get(), view.on_gpu);
  try {
    pinned_.push_back(place(pin, view.offset, base, bytes));
  } catch (...) {
    module_.release(pin.handle);
    throw;
  }
  pinned_.back().on_gpu = view.on_gpu;
  return pinned_.back().address;
}

dev::run_table kmod_memory::runs_of(void* base, std::size_t bytes) const {
  const std::lock_guard hold(lock_);
  for (const pinned& p : pinned_)
    if (p.base == base && p.bytes == bytes && p.runs != nullptr) return p.runs->table();
  return {nullptr, 0};
}

void kmod_memory::unmap(void* base, std::size_t bytes, std::function<bool()> in_use) {
  const std::lock_guard hold(lock_);
  const auto found =
      std::find_if(pinned_.begin(), pinned_.end(), [&](const pinned& p) { return p.base == base && p.bytes == bytes; });
  if (found == pinned_.end() || --found->users > 0) return;
  // The pin has kept the memory itself, so nothing else was written; but the program has seen none of it.
  if (found->on_gpu && gpu::locate(base).where != gpu::residence::device)
    log::warn(
        "{}: the {} bytes of GPU memory at {} were freed while they were registered, so the drive went on with the old "
        "memory; call xio_mem_unregister first",
        name_, bytes, base);
  leaving_.push_back({found->handle, std::move(found->runs), std::move(in_use)});
  pinned_.erase(found);
  release_unused();
}

void kmod_memory::release_unused() {
  std::erase_if(leaving_, [&](const leaving& l) {
    if (l.in_use()) return false;
    module_.release(l.handle);
    return true;
  });
}

std::size_t kmod_memory::waiting() const {
  const std::lock_guard hold(lock_);
  return leaving_.size();
}

}  // namespace xio::nvme
