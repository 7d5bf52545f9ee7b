// SPDX-License-Identifier: MIT
#include "topology/pci_reader.hpp"

#if HAVE_CONFIG_H
#include "config.h"
#endif

#include <memory>
#include <optional>

#include "base/error.hpp"
#include "topology/atomics.hpp"
#include "topology/pci_dump.hpp"

#if HAVE_LIBPCI
extern "C" {
#include <pci/pci.h>
}

#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#endif

namespace xio::topology {

#if HAVE_LIBPCI

namespace {

// libpci ends the process over an error unless told; its frames are C, so the way out is C's as well.
thread_local std::jmp_buf* t_way_out = nullptr;
thread_local char t_complaint[256];

// For clang only this spelling is part of the function's type, as libpci wants it.
__attribute__((noreturn)) void leave(char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(t_complaint, sizeof t_complaint, format, arguments);
  va_end(arguments);
  std::longjmp(*t_way_out, 1);
}

void be_quiet(char*, ...) {}

// Runs a step that makes nothing but calls of libpci and has nothing to destroy.
template <class Step>
bool survives(Step step) {
  std::jmp_buf here;
  t_way_out = &here;
  if (setjmp(here) != 0) return false;
  step();
  return true;
}

using access = std::unique_ptr<pci_access, decltype(&pci_cleanup)>;

access open_access(const std::string& dump) {
  access a(pci_alloc(), pci_cleanup);
  a->error = leave;
  a->warning = be_quiet;
  a->debug = be_quiet;
  std::string name = "dump.name", path = dump;
  if (!dump.empty()) {
    a->method = PCI_ACCESS_DUMP;
    pci_set_param(a.get(), name.data(), path.data());
  }
  pci_access* raw = a.get();
  if (!survives([raw] {
        pci_init(raw);
        pci_scan_bus(raw);
      })) {
    // Half made: what it holds stays until the process ends.
    static_cast<void>(a.release());
    fail(XIO_ERR_UNSUPPORTED, "PCI functions cannot be read: {}; mount /sys", t_complaint);
  }
  return a;
}

// Registers as they are read: plain, because reading may leave by a jump.
struct raw_function {
  int domain, bus, device, function;
  unsigned vendor, device_id, device_class, subsystem_vendor, header;
  bool readable;
  unsigned secondary, subordinate;
  unsigned express, capabilities2, control2;
  unsigned acs, virtuals, vf_count, vf_offset, vf_stride;
};

// Section 7.5.3: offsets in the PCI Express capability. 7.7.8.3 and 9.3.3: in those of ACS and SR-IOV.
constexpr int k_capabilities2 = 0x24, k_control2 = 0x28, k_acs_control = 6;
constexpr int k_sriov_control = 8, k_sriov_count = 0x10, k_sriov_offset = 0x14, k_sriov_stride = 0x16;
constexpr int k_header_end = 64;

// 0 for what is not there: registers that cannot be read are all ones.
unsigned word_or_0(pci_dev* d, int at) {
  const unsigned w = pci_read_word(d, at);
  return w == 0xffff ? 0 : w;
}

void read_extended(pci_dev* d, raw_function& r) {
  if (const pci_cap* c = pci_find_cap(d, PCI_EXT_CAP_ID_ACS, PCI_CAP_EXTENDED))
    r.acs = word_or_0(d, c->addr + k_acs_control);
  const pci_cap* c = pci_find_cap(d, PCI_EXT_CAP_ID_SRIOV, PCI_CAP_EXTENDED);
  if (c == nullptr || (word_or_0(d, c->addr + k_sriov_control) & PCI_IOV_CTRL_VFE) == 0) return;
  r.vf_count = word_or_0(d, c->addr + k_sriov_count);
  r.vf_offset = word_or_0(d, c->addr + k_sriov_offset);
  r.vf_stride = word_or_0(d, c->addr + k_sriov_stride);
}

void read_raw(pci_dev* d, raw_function& r) {
  pci_fill_info(d, PCI_FILL_IDENT | PCI_FILL_CLASS | PCI_FILL_CAPS | PCI_FILL_EXT_CAPS);
  r = {};
  r.domain = d->domain, r.bus = d->bus, r.device = d->dev, r.function = d->func;
  r.vendor = pci_read_word(d, PCI_VENDOR_ID);
  r.device_id = d->device_id;
  r.device_class = d->device_class;
  r.header = pci_read_byte(d, PCI_HEADER_TYPE);
  r.subsystem_vendor = (r.header & 0x7f) == PCI_HEADER_TYPE_NORMAL ? pci_read_word(d, PCI_SUBSYSTEM_VENDOR_ID) : 0;
  if ((r.header & 0x7f) == PCI_HEADER_TYPE_BRIDGE) {
    r.secondary = pci_read_byte(d, PCI_SECONDARY_BUS);
    r.subordinate = pci_read_byte(d, PCI_SUBORDINATE_BUS);
  }
  u8 beyond = 0;
  const bool has_capabilities = (pci_read_word(d, PCI_STATUS) & PCI_STATUS_CAP_LIST) != 0;
  r.readable = !has_capabilities || pci_read_block(d, k_header_end, &beyond, 1) != 0;
  const pci_cap* express = pci_find_cap(d, PCI_CAP_ID_EXP, PCI_CAP_NORMAL);
  if (express == nullptr) return;
  r.express = pci_read_word(d, express->addr + PCI_EXP_FLAGS);
  r.capabilities2 = pci_read_long(d, express->addr + k_capabilities2);
  r.control2 = pci_read_word(d, express->addr + k_control2);
  // A dump that ends before them.
  if (r.capabilities2 == 0xffffffff) r.readable = false;
  read_extended(d, r);
}

pci_function function_of(const raw_function& r, bool has_express) {
  pci_function f;
  f.bus_id = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", r.domain, r.bus, r.device, r.function);
  f.vendor = static_cast<std::uint16_t>(r.vendor);
  f.device = static_cast<std::uint16_t>(r.device_id);
  f.subsystem_vendor = static_cast<std::uint16_t>(r.subsystem_vendor);
  f.device_class = static_cast<std::uint16_t>(r.device_class);
  f.readable = r.readable;
  f.multifunction = (r.header & 0x80) != 0;
  f.is_bridge = (r.header & 0x7f) == PCI_HEADER_TYPE_BRIDGE;
  f.secondary = static_cast<std::uint8_t>(r.secondary);
  f.subordinate = static_cast<std::uint8_t>(r.subordinate);
  f.acs_control = static_cast<std::uint16_t>(r.acs);
  f.virtuals = {static_cast<std::uint16_t>(r.vf_count), static_cast<std::uint16_t>(r.vf_offset),
                static_cast<std::uint16_t>(r.vf_stride)};
  if (!has_express) return f;
  f.kind = static_cast<port_kind>((r.express & PCI_EXP_FLAGS_TYPE) >> 4);
  f.express_version = r.express & PCI_EXP_FLAGS_VERS;
  f.capabilities2 = r.capabilities2;
  f.control2 = static_cast<std::uint16_t>(r.control2);
  return f;
}

pci_dev* find_device(pci_access* a, const std::string& bus_id) {
  for (pci_dev* d = a->devices; d != nullptr; d = d->next)
    if (fmt::format("{:04x}:{:02x}:{:02x}.{:x}", d->domain, d->bus, d->dev, d->func) == bus_id) return d;
  return nullptr;
}

}  // namespace

pci_tree read_pci_tree(const std::string& dump) {
  std::optional<checked_dump> copy;
  if (!dump.empty()) copy.emplace(dump);
  const access a = open_access(copy ? copy->path() : "");
  std::vector<pci_function> all;
  for (pci_dev* d = a->devices; d != nullptr; d = d->next) {
    raw_function r{};
    raw_function* at = &r;
    if (!survives([d, at] { read_raw(d, *at); }))
      fail(XIO_ERR_IO, "a PCI function cannot be read: {}", static_cast<const char*>(t_complaint));
    all.push_back(function_of(r, r.express != 0));
  }
  return pci_tree(std::move(all));
}

void enable_atomics_of(const std::string& bus_id) {
  const access a = open_access("");
  pci_dev* d = find_device(a.get(), bus_id);
  if (d == nullptr) fail(XIO_ERR_ARG, "there is no PCI function {}; see xio-info --atomics", bus_id);
  unsigned now = 0;
  unsigned* at = &now;
  const bool done = survives([d, at] {
    pci_fill_info(d, PCI_FILL_CAPS);
    const pci_cap* c = pci_find_cap(d, PCI_CAP_ID_EXP, PCI_CAP_NORMAL);
    if (c == nullptr) return;
    const unsigned was = pci_read_word(d, c->addr + k_control2);
    pci_write_word(d, c->addr + k_control2, static_cast<u16>(was | k_atomic_requester));
    *at = pci_read_word(d, c->addr + k_control2);
  });
  if (!done) fail(XIO_ERR_IO, "{} cannot be changed: {}; run as root", bus_id, static_cast<const char*>(t_complaint));
  if (now == 0xffff || (now & k_atomic_requester) == 0)
    fail(XIO_ERR_IO,
         "{} does not keep its AtomicOp requester enable bit; run as root, without kernel lockdown, where the device "
         "takes it",
         bus_id);
}

#else

pci_tree read_pci_tree(const std::string&) {
  fail(XIO_ERR_UNSUPPORTED,
       "this build cannot read PCI functions, it was made without libpci; install libpci-dev and configure again");
}

void enable_atomics_of(const std::string& bus_id) {
  fail(XIO_ERR_UNSUPPORTED,
       "this build cannot change {}, it was made without libpci; install libpci-dev and configure again", bus_id);
}

#endif

}  // namespace xio::topology
