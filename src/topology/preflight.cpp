// SPDX-License-Identifier: MIT
#include "topology/preflight.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <sstream>

#include "base/first_line.hpp"
#include "topology/access.hpp"
#include "topology/atomics.hpp"
#include "topology/kfd_node.hpp"
#include "topology/peer_path.hpp"

namespace xio::topology {
namespace {

namespace fs = std::filesystem;

constexpr unsigned k_amd = 0x1002;
constexpr unsigned k_cap_ipc_lock = 14;  // linux capability.h

bool is_empty(const std::string& folder) {
  std::error_code error;
  const bool empty = fs::is_empty(folder, error);
  return error || empty;
}

std::vector<const pci_function*> amd_gpus(const pci_tree& t) {
  std::vector<const pci_function*> all;
  for (const pci_function& f : t.functions())
    if (f.vendor == k_amd && role_of(f) == device_role::gpu) all.push_back(&f);
  return all;
}

piece none(const char* name, const char* what) { return {name, piece_state::not_needed, what, ""}; }

// --- The GPU -----------------------------------------------------------------------------------------

piece gpu_driver(const surroundings& s) {
  if (amd_gpus(s.pci).empty()) return none("gpu_driver", "no AMD GPU");
  std::error_code error;
  if (!fs::exists(s.root + "/dev/kfd", error))
    return {"gpu_driver", piece_state::missing, "there is no /dev/kfd",
            "as root: modprobe amdgpu; if it stays away, dmesg says why (PCIe AtomicOps are a common reason)"};
  return device_access(s.root, "gpu_driver", {"/dev/kfd"});
}

// How much of the memory the CPU sees, as amdgpu tells.
piece large_bar(const surroundings& s) {
  bool found = false;
  for (const pci_function* g : amd_gpus(s.pci)) {
    const std::string folder = s.root + "/sys/bus/pci/devices/" + g->bus_id;
    const std::string all = first_line(folder + "/mem_info_vram_total");
    const std::string seen = first_line(folder + "/mem_info_vis_vram_total");
    if (all.empty() || seen.empty()) continue;
    found = true;
    if (all != seen)
      return {"large_bar", piece_state::missing,
              fmt::format("of {}'s memory, {} bytes, only {} bytes are behind its BAR", g->bus_id, all, seen),
              "turn on Above 4G Decoding and Resizable BAR in the firmware's settings; in a guest give the root port "
              "pref64-reserve=128G"};
  }
  if (amd_gpus(s.pci).empty()) return none("large_bar", "no AMD GPU");
  if (!found) return {"large_bar", piece_state::unknown, "amdgpu does not tell the size of the GPU's memory", ""};
  return {"large_bar", piece_state::ok, "all of the GPU's memory is behind its BAR", ""};
}

piece fine_grain(const surroundings& s) {
  bool alone = false;
  for (const pci_function* g : amd_gpus(s.pci)) {
    const auto node = find_kfd_node(s.root, g->bus_id);
    if (node && node->hive == 0 && !node->has_cpu) alone = true;
  }
  if (!alone) return none("fine_grain", "no AMD GPU on PCIe alone");
  if (s.forced_fine_grain == "1") return {"fine_grain", piece_state::ok, "HSA_FORCE_FINE_GRAIN_PCIE is 1", ""};
  return {"fine_grain", piece_state::missing,
          "a GPU on PCIe alone has fine-grained memory only with HSA_FORCE_FINE_GRAIN_PCIE=1",
          "export HSA_FORCE_FINE_GRAIN_PCIE=1 before every PE starts"};
}

piece atomics(const surroundings& s) {
  bool unknown = false;
  for (const pci_function* g : amd_gpus(s.pci)) {
    const atomics_verdict v = atomics_to_host(s.pci, *g);
    if (v.is == atomics_support::unknown) unknown = true;
    if (v.is == atomics_support::no || v.is == atomics_support::off)
      return {"pcie_atomics", piece_state::missing,
              fmt::format("AtomicOps of GPU {} do not reach host memory: at {} {}", g->bus_id, v.at, v.why), v.cure};
  }
  if (amd_gpus(s.pci).empty()) return none("pcie_atomics", "no AMD GPU");
  if (unknown) return {"pcie_atomics", piece_state::unknown, "see xio-info --atomics", ""};
  return {"pcie_atomics", piece_state::ok, "AtomicOps of every GPU reach host memory", ""};
}

// --- Between devices ---------------------------------------------------------------------------------

piece iommu(const surroundings& s) {
  if (!is_empty(s.root + "/sys/class/iommu")) return {"iommu", piece_state::ok, "on", ""};
  return {
      "iommu", piece_state::missing, "the kernel uses none, and drives by vfio want one",
      "turn on VT-d or AMD-Vi in the firmware's settings and boot with intel_iommu=on or amd_iommu=on, and iommu=pt"};
}

piece acs(const surroundings& s) {
  for (const pci_function& f : s.pci.functions())
    if (f.kind == port_kind::downstream && (f.acs_control & k_acs_redirect) != 0)
      return {"acs", piece_state::missing,
              fmt::format("ACS at switch port {} sends transfers between devices up to the root complex", f.bus_id),
              fmt::format("where the devices behind that switch need not be kept apart, as root: setpci -s {} "
                          "ECAP_ACS+6.w=0:{:x}",
                          f.bus_id, k_acs_redirect)};
  if (const auto& all = s.pci.functions(); std::ranges::any_of(all, [](const auto& f) { return !f.readable; }))
    return {"acs", piece_state::unknown, "configuration beyond 64 bytes cannot be read", "run as root"};
  return {"acs", piece_state::ok, "no switch sends transfers between devices up to the root complex", ""};
}

piece dma_buf(const surroundings& s) {
  const std::string release = first_line(s.root + "/proc/sys/kernel/osrelease");
  unsigned major = 0, minor = 0;
  if (std::sscanf(release.c_str(), "%3u.%3u", &major, &minor) != 2)
    return {"dma_buf", piece_state::unknown, "the kernel does not tell its release", ""};
  // ib_umem_dmabuf_get came with 5.12.
  if (major < 5 || (major == 5 && minor < 12))
    return {"dma_buf", piece_state::missing, fmt::format("kernel {} has no dma-bufs for NICs", release),
            "use kernel 5.12 or later"};
  // Debian's place, and Fedora's.
  std::ifstream in(s.root + "/boot/config-" + release);
  if (!in) in.open(s.root + "/lib/modules/" + release + "/config");
  if (!in)
    return {"dma_buf", piece_state::unknown,
            fmt::format("neither /boot/config-{} nor /lib/modules/{}/config can be read", release, release),
            "look for CONFIG_PCI_P2PDMA, CONFIG_DMABUF_MOVE_NOTIFY and CONFIG_HSA_AMD_P2P in zcat /proc/config.gz"};
  std::string text((std::istreambuf_iterator<char>(in)), {}), lacks;
  std::vector<std::string> options{"CONFIG_PCI_P2PDMA", "CONFIG_HSA_AMD_P2P"};
  // From 7.3 on importers are always told of a move, and there is no option.
  if (major < 7 || (major == 7 && minor < 3)) options.push_back("CONFIG_DMABUF_MOVE_NOTIFY");
  for (const std::string& option : options)
    if (("\n" + text).find("\n" + option + "=y\n") == std::string::npos) lacks += (lacks.empty() ? "" : ", ") + option;
  if (!lacks.empty())
    return {"dma_buf", piece_state::missing, fmt::format("kernel {} was made without {}", release, lacks),
            "use a kernel with them, or let data lie in host memory: XIO_MEMORY_MODE=0"};
  return {"dma_buf", piece_state::ok, fmt::format("kernel {} lets devices reach GPU memory", release), ""};
}

// AMD's driver package says its version there; Linux's own amdgpu has none, and refuses pages of registers
// (https://github.com/ROCm/rocm-xio/issues/167).
piece register_pages(const surroundings& s) {
  if (amd_gpus(s.pci).empty()) return none("register_pages", "no AMD GPU");
  const std::string module = s.root + "/sys/module/amdgpu", version = first_line(module + "/version");
  std::error_code error;
  if (!version.empty())
    return {"register_pages", piece_state::ok,
            "amdgpu " + version + ", of AMD's driver package, maps doorbells for kernels", ""};
  if (!fs::is_directory(module, error)) return {"register_pages", piece_state::unknown, "amdgpu is not loaded", ""};
  return {"register_pages", piece_state::missing,
          "Linux's own amdgpu maps no doorbells for kernels, but for mlx5 and drives by vfio from Linux 7.2 on; else a "
          "thread of the host rings them",
          "install amdgpu-dkms, AMD's driver package, and boot with it"};
}

// --- This process ------------------------------------------------------------------------------------

// CAP_IPC_LOCK knows no limit.
bool locks_freely(const surroundings& s) {
  std::ifstream in(s.root + "/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    unsigned long long set = 0;
    if (std::sscanf(line.c_str(), "CapEff: %llx", &set) == 1) return (set >> k_cap_ipc_lock & 1) != 0;
  }
  return false;
}

piece memlock(const surroundings& s) {
  if (locks_freely(s)) return {"memlock", piece_state::ok, "no limit: CAP_IPC_LOCK", ""};
  std::ifstream in(s.root + "/proc/self/limits");
  const std::string title = "Max locked memory";
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(title, 0) != 0) continue;
    std::string soft;
    std::istringstream(line.substr(title.size())) >> soft;
    unsigned long long bytes = 0;
    if (soft == "unlimited") return {"memlock", piece_state::ok, "unlimited", ""};
    if (std::sscanf(soft.c_str(), "%llu", &bytes) != 1) break;
    if (bytes >= s.heap_bytes) return {"memlock", piece_state::ok, fmt::format("{} bytes", bytes), ""};
    return {"memlock", piece_state::missing,
            fmt::format("{} bytes may be locked, and the heap has {} (XIO_HEAP_SIZE)", bytes, s.heap_bytes),
            "as root put '* - memlock unlimited' into a file of /etc/security/limits.d and log in again"};
  }
  return {"memlock", piece_state::unknown, "the kernel does not tell the limit", ""};
}

piece render_access(const surroundings& s) {
  if (amd_gpus(s.pci).empty()) return none("render_access", "no AMD GPU");
  return device_access(s.root, "render_access", files_like(s.root, "/dev/dri", "renderD"));
}

piece rdma_access(const surroundings& s) {
  const auto files = files_like(s.root, "/dev/infiniband", "uverbs");
  if (files.empty() && is_empty(s.root + "/sys/class/infiniband")) return none("rdma_access", "no RDMA device");
  if (files.empty())
    return {"rdma_access", piece_state::missing, "there are RDMA devices but no /dev/infiniband/uverbs*",
            "as root: modprobe ib_uverbs"};
  return device_access(s.root, "rdma_access", files);
}

// A Slingshot NIC is reached by libfabric's provider cxi, through a file of its own.
piece slingshot_access(const surroundings& s) {
  const auto files = files_like(s.root, "/dev", "cxi");
  if (files.empty() && is_empty(s.root + "/sys/class/cxi")) return none("slingshot_access", "no Slingshot NIC");
  if (files.empty())
    return {
        "slingshot_access", piece_state::missing, "there are Slingshot NICs but no /dev/cxi*",
        "in a container: pass /dev/cxi0 and the next of the host into it; else load the module of the CXI driver that "
        "makes them"};
  return device_access(s.root, "slingshot_access", files);
}

// A device has a file of its group and, where the kernel has iommufd, one of its own; either way in will do.
piece vfio_access(const surroundings& s) {
  std::vector<std::string> files, own = files_like(s.root, "/dev/vfio/devices", "vfio");
  for (const std::string& f : files_like(s.root, "/dev/vfio", ""))
    if (f != "/dev/vfio/vfio" && f != "/dev/vfio/devices") files.push_back(f);
  if (files.empty() && own.empty()) return none("vfio_access", "no device is bound to vfio");
  if (!own.empty()) {
    own.push_back("/dev/iommu");
    piece by_iommufd = device_access(s.root, "vfio_access", own);
    if (by_iommufd.is == piece_state::ok || files.empty()) return by_iommufd;
  }
  return device_access(s.root, "vfio_access", files);
}

}  // namespace

const char* state_name(piece_state s) {
  switch (s) {
    case piece_state::ok: return "ok";
    case piece_state::missing: return "missing";
    case piece_state::not_needed: return "not needed";
    case piece_state::unknown: break;
  }
  return "unknown";
}

std::vector<piece> preflight(const surroundings& s) {
  std::vector<piece> all = {
      gpu_driver(s), render_access(s),  large_bar(s), fine_grain(s),  atomics(s),          iommu(s),      acs(s),
      dma_buf(s),    register_pages(s), memlock(s),   rdma_access(s), slingshot_access(s), vfio_access(s)};
  for (piece& p : peer_path(s)) all.push_back(std::move(p));
  return all;
}

}  // namespace xio::topology
