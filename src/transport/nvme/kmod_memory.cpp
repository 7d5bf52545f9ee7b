// SPDX-License-Identifier: MIT
#include "transport/nvme/kmod_memory.hpp"

#include <algorithm>
#include <bit>

#include "base/error.hpp"
#include "base/log.hpp"
#include "gpu/memory.hpp"
#include "memory/dmabuf.hpp"
#include "xio/device/impl/bus_rows.hpp"

namespace xio::nvme {
namespace {

constexpr std::uint64_t k_drive_page = 4096;  // of the drive: CC.MPS is 0

}  // namespace

// The queues have ended: no command names anything.
kmod_memory::~kmod_memory() {
  for (const pinned& p : pinned_) release(p.handles);
  for (const leaving& l : leaving_) release(l.handles);
}

void kmod_memory::release(const std::vector<std::uint32_t>& handles) const {
  for (const std::uint32_t handle : handles) module_.release(handle);
}

namespace {

// Of the largest power of two that divides every run's begin.
std::uint32_t common_shift(const std::vector<kmod_module::run>& runs) {
  std::uint64_t bits = std::uint64_t{1} << dev::k_most_row_shift;
  for (const kmod_module::run& r : runs) bits |= r.offset;
  return static_cast<std::uint32_t>(std::countr_zero(bits));
}

// A run has as many rows as it is long; the last may be cut off in its last.
std::vector<std::uint64_t> rows_of_runs(const std::vector<kmod_module::run>& runs, std::uint64_t bytes,
                                        std::uint32_t shift) {
  std::vector<std::uint64_t> rows;
  rows.reserve((bytes >> shift) + 1);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::uint64_t end = i + 1 < runs.size() ? runs[i + 1].offset : bytes;
    const std::uint64_t count = (end - runs[i].offset + (std::uint64_t{1} << shift) - 1) >> shift;
    rows.insert(rows.end(), count, dev::row_of(runs[i].offset, runs[i].address));
  }
  return rows;
}

}  // namespace

row_table::row_table(std::vector<std::uint64_t> rows, std::uint32_t shift)
    : rows_(std::move(rows)),
      shift_(shift),
      for_kernels_(rows_.size() * sizeof rows_[0], gpu::place::device, dev::k_rows_align) {
  gpu::copy(for_kernels_.data(), rows_.data(), rows_.size() * sizeof rows_[0]);
}

std::uint64_t row_table::word() const {
  return dev::rows_word(reinterpret_cast<std::uint64_t>(for_kernels_.data()), shift_);
}

std::shared_ptr<const row_table> row_table::of(const std::vector<kmod_module::run>& runs, std::uint64_t bytes) {
  static std::mutex lock;
  // Never destroyed: an exit handler may open a drive.
  static auto& known = *new std::vector<std::weak_ptr<const row_table>>;
  const std::uint32_t shift = common_shift(runs);
  std::vector<std::uint64_t> rows = rows_of_runs(runs, bytes, shift);
  const std::lock_guard hold(lock);
  std::erase_if(known, [](auto& one) { return one.expired(); });
  for (const auto& one : known)
    if (auto table = one.lock(); table != nullptr && table->shift() == shift && table->rows() == rows) return table;
  auto made = std::make_shared<const row_table>(std::move(rows), shift);
  known.push_back(made);
  return made;
}

// Offsets count from the begin of the first run that is named, so that runs of one length, such as a GPU's pages of
// 2 MiB, stay multiples of it in memory that begins inside of one.
kmod_memory::pinned kmod_memory::place(const joined& whole, void* base, std::size_t bytes) const {
  const std::uint64_t offset = whole.offset, in_page = offset % k_drive_page, last = offset + bytes;
  std::vector<kmod_module::run> runs;
  std::uint64_t first = 0, covered = offset - in_page;
  for (const kmod_module::run& r : whole.runs) {
    if (r.offset + r.bytes <= covered || r.offset >= last) continue;
    if (r.address % k_drive_page != r.offset % k_drive_page || r.offset % k_drive_page != 0)
      fail(XIO_ERR_UNSUPPORTED,
           "{}: the {} bytes at {} lie on the bus in parts that are no whole pages; register memory in whole pages of "
           "{} bytes",
           name_, bytes, base, k_drive_page);
    if (runs.empty()) first = r.offset;
    runs.push_back({r.offset - first, r.address, r.bytes});
    covered = r.offset + r.bytes;
  }
  if (covered < last)
    fail(XIO_ERR_IO, "{}: the kernel module pinned a buffer that ends before the {} bytes at {}; register it again",
         name_, bytes, base);
  if (runs.size() == 1)
    return {base, bytes, whole.handles, runs[0].address + (offset - first), nullptr, 1, whole.on_gpu};
  return {base, bytes,       whole.handles, dev::k_in_runs | (offset - first), row_table::of(runs, covered - first),
          1,    whole.on_gpu};
}

// Where one dma-buf does not hold all of it, each of the others begins a page: so they are one behind the other.
kmod_memory::joined kmod_memory::pin_all(void* base, std::size_t bytes) const {
  joined out{};
  try {
    for (std::size_t done = 0; done < bytes;) {
      const memory::device_view view = memory::view_for_device(static_cast<unsigned char*>(base) + done, bytes - done);
      if (done == 0) out.offset = view.offset;
      out.on_gpu = view.on_gpu;
      add(out, module_.pin_dmabuf(view.file.get(), view.on_gpu));
      done += view.bytes;
    }
  } catch (...) {
    release(out.handles);
    throw;
  }
  return out;
}

void kmod_memory::add(joined& to, const kmod_module::pin& pin) const {
  to.handles.push_back(pin.handle);
  const std::uint64_t from = to.runs.empty() ? 0 : to.runs.back().offset + to.runs.back().bytes;
  for (const kmod_module::run& r : pin.runs) {
    if (!to.runs.empty() && to.runs.back().address + to.runs.back().bytes == r.address)
      to.runs.back().bytes += r.bytes;
    else
      to.runs.push_back({from + r.offset, r.address, r.bytes});
  }
}

std::uint64_t kmod_memory::map(void* base, std::size_t bytes) {
  const std::lock_guard hold(lock_);
  release_unused();
  for (pinned& p : pinned_) {
    if (p.base != base || p.bytes != bytes) continue;
    ++p.users;
    return p.address;
  }
  const joined whole = pin_all(base, bytes);
  try {
    pinned_.push_back(place(whole, base, bytes));
  } catch (...) {
    release(whole.handles);
    throw;
  }
  return pinned_.back().address;
}

std::uint64_t kmod_memory::rows_of(void* base, std::size_t bytes) const {
  const std::lock_guard hold(lock_);
  for (const pinned& p : pinned_)
    if (p.base == base && p.bytes == bytes && p.table != nullptr) return p.table->word();
  return 0;
}

std::uint64_t kmod_memory::address_of(void* at, void* base, std::size_t bytes) const {
  const std::lock_guard hold(lock_);
  const auto inside = static_cast<std::uint64_t>(static_cast<unsigned char*>(at) - static_cast<unsigned char*>(base));
  for (const pinned& p : pinned_) {
    if (p.base != base || p.bytes != bytes) continue;
    return p.table == nullptr ? p.address + inside : p.table->address_of((p.address & ~dev::k_in_runs) + inside);
  }
  fail(XIO_ERR_INTERNAL, "{}: the {} bytes at {} are not pinned; this is a bug of XIO", name_, bytes, base);
}

void kmod_memory::unmap(void* base, std::size_t bytes, std::function<bool()> in_use) {
  const std::lock_guard hold(lock_);
  const auto found = std::ranges::find_if(pinned_, [&](const pinned& p) { return p.base == base && p.bytes == bytes; });
  if (found == pinned_.end() || --found->users > 0) return;
  // The pin has kept the memory itself, so nothing else was written; but the program has seen none of it.
  if (found->on_gpu && gpu::locate(base).where != gpu::residence::device)
    log::warn(
        "{}: the {} bytes of GPU memory at {} were freed while they were registered, so the drive went on with the old "
        "memory; call xio_mem_unregister first",
        name_, bytes, base);
  leaving_.push_back({std::move(found->handles), std::move(found->table), std::move(in_use)});
  pinned_.erase(found);
  release_unused();
}

void kmod_memory::release_unused() {
  std::erase_if(leaving_, [&](const leaving& l) {
    if (l.in_use()) return false;
    release(l.handles);
    return true;
  });
}

std::string kmod_memory::trouble() const {
  const std::lock_guard hold(lock_);
  for (const pinned& p : pinned_)
    for (const std::uint32_t handle : p.handles)
      if (std::string what = module_.trouble_of(handle); !what.empty()) return what;
  return "";
}

std::size_t kmod_memory::waiting() const {
  const std::lock_guard hold(lock_);
  return leaving_.size();
}

}  // namespace xio::nvme
