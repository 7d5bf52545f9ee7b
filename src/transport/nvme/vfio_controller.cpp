// SPDX-License-Identifier: MIT
#include "transport/nvme/vfio_controller.hpp"

#include <poll.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "gpu/memory.hpp"
#include "memory/pages.hpp"
#include "transport/nvme/holders.hpp"

namespace xio::nvme {

namespace w = wire::nvme;

namespace {

// Of the watch: ten register reads a second cost a drive nothing, and a thread that waits for a dead drive can wait a
// tenth of a second more.
constexpr std::chrono::milliseconds k_look_period{100};

bool has_spoken(int fd) {
  pollfd one{fd, POLLIN, 0};
  return poll(&one, 1, 0) > 0;
}

// Of the process's memory the IOMMU pins only what is the host's.
memory::ring_places places(const nvme_options& o) {
  const memory::ability rings{gpu::place::shared,
                              gpu::has_device_memory() ? "vfio cannot pin memory of the GPU for a drive" : nullptr};
  return memory::place_rings(o.memory_mode, "an NVMe controller by vfio", rings, rings,
                             {gpu::place::shared, "its doorbells are registers of the controller"});
}

}  // namespace

std::string trouble_of(std::uint32_t csts) {
  if (csts == ~std::uint32_t{0}) return "it is gone from the bus; put it back and open it again";
  if ((csts & w::k_csts_cfs) != 0) return "it reports a fatal error; close it and open it again, which resets it";
  if ((csts & w::k_csts_rdy) == 0) return "it was reset by somebody else; close it and open it again";
  return "";
}

vfio_controller::vfio_controller(const std::string& name, const xio_storage_attr_t& attr, const nvme_options& o,
                                 progress::machine& machine)
    : name_(name), place_(parse_vfio_name(name)), read_only_((attr.flags & XIO_STORAGE_READ_ONLY) != 0) {
  // Everything that can be wrong with the arguments comes before the drive: opening resets it.
  checked_depth(attr, o);
  const std::uint32_t wanted = checked_queues(attr), last = checked_last_queue(attr, o);
  const memory::ring_places where = places(o);
  const vfio_place place{name, place_.bdf, find_vfio_group("", place_.bdf, name), find_vfio_cdev("", place_.bdf)};
  const vfio_choice choice = choose_vfio_way(o, "", place);
  if (!o.nvme_queue_bar.empty()) lender_ = std::make_unique<vfio_lender>(o.nvme_queue_bar);
  device_ = std::make_unique<vfio_device>(place, choice);
  try {
    drive_ = std::make_unique<drive>(name, device_->registers(), static_cast<bus&>(*this),
                                     std::chrono::milliseconds(o.timeout_ms), place_.nsid);
    check_namespace(drive_->facts(), attr, name);
    if (const drive_facts& f = drive_->facts(); f.shared && !read_only_)
      refuse_namespace_in_use({f.nguid, f.eui64, f.nsid, f.blocks * f.block_bytes}, name);
    queues_ = std::make_unique<queue_set>(*drive_, attr, o, machine, show_doorbells(last), where);
    watch_ = std::make_unique<drive_watch>(
        k_look_period, std::vector<int>{device_->wanted_back(), device_->broken()}, [this] { return trouble(); },
        [this](const auto& what) { lose(what); });
  } catch (...) {
    close();
    throw;
  }
  const drive_facts& f = drive_->facts();
  backend_ = std::string("vfio ") + name_of(device_->space().way()) + ", doorbells " + name_of(queues_->way());
  if (queues_->count() < wanted)
    log::warn("{} has {} I/O queues and not the {} that were asked for", name, queues_->count(), wanted);
  log::debug("{}: {} queues of {} entries, {} blocks of {} bytes, {} bytes a command, {}, {}", name, queues_->count(),
             queues_->depth(), f.blocks, f.block_bytes, f.transfer_bytes,
             f.write_cache ? "a volatile cache" : "no volatile cache", backend_);
}

vfio_controller::~vfio_controller() { close(); }

// The watch goes first: what it would see from here on is our own doing.
void vfio_controller::stop() noexcept {
  watch_.reset();
  if (cut_off_ && drive_ != nullptr) drive_->abandon();
  if (queues_ != nullptr) queues_->stop();
}

void vfio_controller::close() noexcept {
  stop();
  queues_.reset();
  drive_.reset();
  if (kernel_page_ != nullptr && !gpu::unmap_registers(device_->registers() + w::k_reg_doorbells)) {
    log::warn("{} stays open until the process ends: a kernel that still runs keeps its doorbells mapped", name_);
    (void)device_.release();
  }
  device_.reset();
}

// Kernels get the doorbells and nothing else of the controller.
doorbell_reach vfio_controller::show_doorbells(std::uint32_t queues) {
  unsigned char* page = device_->registers() + w::k_reg_doorbells;
  const std::size_t room = device_->register_bytes() - w::k_reg_doorbells;
  const std::size_t end = w::cq_head_doorbell(queues, drive_->facts().stride) + 4 - w::k_reg_doorbells;
  if (end > room)
    fail(XIO_ERR_ARG, "cannot open {}: the doorbells of {} queues are {} bytes, and it has {}; ask for fewer", name_,
         queues, end, room);
  const std::size_t whole = memory::align_up(end, gpu::page_size()).value_or(room);
  const std::size_t bytes = std::min(whole, room);
  kernel_page_ = gpu::map_registers(
      page, bytes, {[&] { return export_registers(kernel_calls(), device_->file(), w::k_reg_doorbells, bytes); }});
  doorbell_reach can;
  if (kernel_page_ != nullptr) can.registers = static_cast<unsigned char*>(kernel_page_) - w::k_reg_doorbells;
  can.bdf = place_.bus_devfn;
  can.host_registers = device_->registers();
  return can;
}

dev::storage_view vfio_controller::view() const {
  dev::storage_view v = queues_->view();
  if (read_only_) v.read_only = 1;
  return v;
}

// All that are open share one container, or one address space of iommufd.
std::shared_ptr<const void> vfio_controller::domain() const {
  static const std::shared_ptr<const void> all = std::make_shared<int>();
  return all;
}

// By the watch's thread, as lose() is.
std::string vfio_controller::trouble() {
  csts_ =
      __atomic_load_n(reinterpret_cast<const std::uint32_t*>(device_->registers() + w::k_reg_csts), __ATOMIC_ACQUIRE);
  if (has_spoken(device_->broken())) return "the kernel has seen a PCIe error of it; close it and open it again";
  if (has_spoken(device_->wanted_back()))
    return "the kernel wants it back (it is being unbound or unplugged); close it";
  return trouble_of(csts_);
}

void vfio_controller::lose(const std::string& what) {
  log::warn("{}: {} (CSTS {:#x})", name_, what, csts_);
  // Before anybody hears of it: what its commands name may be used for something else, or be unmapped, from then on.
  cut_off_ = true;
  if (!device_->cut_off()) log::debug("{}: its DMA could not be ended", name_);
  // A GPU that has failed refuses copies; its kernels see nothing any more.
  try {
    queues_->fail(XIO_ERR_TRANSPORT, csts_);
  } catch (const std::exception& e) {
    log::warn("{}: its queues could not be notified: {}", name_, e.what());
  }
}

}  // namespace xio::nvme
