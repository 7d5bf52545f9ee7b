// SPDX-License-Identifier: MIT
#include "transport/rdma/uverbs/facts.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"

namespace xio::rdma::uverbs {

namespace {

namespace fs = std::filesystem;

constexpr std::uint8_t k_active = 4;  // enum ib_port_state
constexpr std::uint32_t k_most_gids = 1024;

// PCI class code: network controller.
constexpr const char* k_network_class = "0x02";

fs::path sys_root() {
  const char* root = std::getenv("SYSFS_PATH");
  return root != nullptr ? root : "/sys";
}

std::string word_in(const fs::path& file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return word;
}

proxy::nic_vendor vendor_of(const std::string& number) {
  if (number == "0x15b3") return proxy::nic_vendor::nvidia;
  if (number == "0x14e4") return proxy::nic_vendor::broadcom;
  return number == "0x1dd8" ? proxy::nic_vendor::pensando : proxy::nic_vendor::other;
}

const char* state_text(std::uint8_t state) {
  switch (state) {
    case 0: return "no change";
    case 1: return "down";
    case 2: return "init";
    case 3: return "armed";
    case 4: return "active";
    case 5: return "active defer";
    default: return "invalid state";
  }
}

void read_gids(const domain& d, std::vector<port_facts>& ports) {
  std::vector<gid_entry> table(k_most_gids);
  std::uint64_t count = 0;
  call c(obj_device, device::query_gids);
  c.in(device::entry_bytes, std::uint64_t{sizeof(gid_entry)}).in(device::gid_flags, std::uint32_t{0});
  c.out(device::gid_entries, table.data(), table.size() * sizeof(gid_entry)).out(device::gid_count, &count);
  if (d.run(c) != 0) return;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count, table.size()); ++i) {
    gid_row row{table[i].index, static_cast<gid_kind>(table[i].type), {}};
    std::memcpy(row.address.data(), table[i].gid, row.address.size());
    for (port_facts& p : ports)
      if (p.number == table[i].port && table[i].type <= static_cast<std::uint32_t>(gid_kind::roce_v2))
        p.gids.push_back(row);
  }
}

}  // namespace

std::vector<idle_function> list_idle_functions() {
  std::vector<idle_function> all;
  std::error_code err;
  for (const auto& entry : fs::directory_iterator(sys_root() / "bus/pci/devices", err)) {
    const proxy::nic_vendor vendor = vendor_of(word_in(entry.path() / "vendor"));
    const bool is_network = word_in(entry.path() / "class").rfind(k_network_class, 0) == 0;
    if (vendor == proxy::nic_vendor::other || !is_network || fs::exists(entry.path() / "infiniband", err)) continue;
    all.push_back({entry.path().filename().string(), vendor});
  }
  std::ranges::sort(all, [](const auto& a, const auto& b) { return a.bus_id < b.bus_id; });
  return all;
}

port_facts read_port(const domain& d, std::uint8_t number) {
  port_facts p;
  p.number = number;
  query_port_response r{};
  call c(obj_device, device::query_port);
  c.in(device::port_number, number).out(device::port_response, &r);
  if (const int err = d.run(c); err != 0) {
    p.state = "not readable: " + errno_text(err);
    return p;
  }
  p.active = r.state == k_active;
  p.state = state_text(r.state);
  p.link = r.link == 2 ? link_layer::ethernet : r.link == 1 ? link_layer::infiniband : link_layer::unspecified;
  p.active_mtu = r.active_mtu;
  p.lid = r.lid;
  p.gbits = gbits_of(r.width, r.speed);
  p.max_message = r.most_message;
  p.gid_count = r.gids;
  p.pkey_count = r.pkeys;
  return p;
}

std::vector<listed_device> list_devices() {
  const fs::path sys = sys_root();
  std::vector<listed_device> all;
  std::error_code err;
  for (const auto& entry : fs::directory_iterator(sys / "class/infiniband_verbs", err)) {
    const std::string name = word_in(entry.path() / "ibdev");
    if (name.empty()) continue;  // abi_version
    all.push_back({name, entry.path().filename().string(),
                   vendor_of(word_in(sys / "class/infiniband" / name / "device/vendor")),
                   std::atoi(word_in(entry.path() / "abi_version").c_str())});
  }
  return all;
}

device_facts read_facts(const listed_device& l) {
  device_facts f;
  f.name = l.name;
  try {
    // Both drivers take 8 bytes of wishes, and no wish.
    const std::uint64_t nothing = 0;
    unsigned char context[64], pd[16];
    const domain d(l.name, l.file, l.vendor == proxy::nic_vendor::broadcom ? driver_bnxt : driver_ionic,
                   {&nothing, sizeof nothing, context, sizeof context}, {nullptr, 0, pd, sizeof pd});
    const query_device wanted{};
    query_device_response r{};
    call c(obj_device, device::invoke_write);
    c.choose(device::write_command, cmd_query_device).in(device::core_in, wanted).out(device::core_out, &r);
    if (const int e = d.run(c); e != 0) {
      f.closed = errno_text(e);
      return f;
    }
    f.has_atomics = r.atomics != 0;
    f.max_wr = r.send_requests;
    f.max_sge = r.spans;
    f.max_cqe = r.cq_entries;
    f.responder_depth = static_cast<std::uint8_t>(std::min(r.responder_depth, 255u));
    f.initiator_depth = static_cast<std::uint8_t>(std::min(r.initiator_depth, 255u));
    for (std::uint8_t n = 1; n <= r.ports && n != 0; ++n) f.ports.push_back(read_port(d, n));
    read_gids(d, f.ports);
  } catch (const error& e) {
    f.closed = e.what();
  }
  return f;
}

}  // namespace xio::rdma::uverbs
