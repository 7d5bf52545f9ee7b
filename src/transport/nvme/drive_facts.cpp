// SPDX-License-Identifier: MIT
#include "transport/nvme/drive_facts.hpp"

#include <cstring>

#include "base/error.hpp"
#include "xio/wire/nvme.hpp"

namespace xio::nvme {

namespace w = wire::nvme;

namespace {

template <class T>
T field(const unsigned char* page, std::uint32_t offset) {
  T value;
  std::memcpy(&value, page + offset, sizeof value);
  return value;
}

}  // namespace

void read_capabilities(std::uint64_t cap, const std::string& name, drive_facts& f) {
  f.stride = w::cap_dstrd(cap);
  f.max_entries = w::cap_mqes(cap) + 1;
  f.contiguous = w::cap_cqr(cap);
  if ((w::cap_css(cap) & 1) == 0)
    fail(XIO_ERR_UNSUPPORTED, "{} has no NVM command set (CAP {:#x}); use another drive", name, cap);
  if (w::cap_mpsmin(cap) != 0)
    fail(XIO_ERR_UNSUPPORTED, "{} does not do 4 KiB pages (CAP {:#x}); use another drive", name, cap);
}

void read_controller(const unsigned char* page, drive_facts& f) {
  const std::uint32_t mdts = field<std::uint8_t>(page, w::k_id_mdts);
  f.transfer_bytes = mdts == 0 || mdts >= 11 ? k_most_transfer : f.page_bytes << mdts;
  f.write_cache = (field<std::uint8_t>(page, w::k_id_vwc) & 1) != 0;
  const std::uint32_t oncs = field<std::uint16_t>(page, w::k_id_oncs);
  f.compares = (oncs & w::k_oncs_compare) != 0;
  f.zeroes = (oncs & w::k_oncs_write_zeroes) != 0;
  // Dwords only is what PRPs ask of buffers too.
  f.sgls = w::sgls_supported(field<std::uint32_t>(page, w::k_id_sgls));
  f.shadow_doorbells = (field<std::uint16_t>(page, w::k_id_oacs) & w::k_oacs_doorbell_buffer_config) != 0;
}

void read_namespace(const unsigned char* page, const std::string& name, drive_facts& f) {
  f.blocks = field<std::uint64_t>(page, w::k_id_nsze);
  f.read_only = (field<std::uint8_t>(page, w::k_id_nsattr) & 1) != 0;
  f.shared = (field<std::uint8_t>(page, w::k_id_nmic) & 1) != 0;
  std::memcpy(f.nguid.data(), page + w::k_id_nguid, f.nguid.size());
  std::memcpy(f.eui64.data(), page + w::k_id_eui64, f.eui64.size());
  const std::uint32_t format =
      w::format_in_use(field<std::uint8_t>(page, w::k_id_flbas), field<std::uint8_t>(page, w::k_id_nlbaf));
  const std::uint32_t lbaf = field<std::uint32_t>(page, w::k_id_lbaf + 4 * format);
  const std::uint32_t lbads = (lbaf >> 16) & 0xff;
  if ((lbaf & 0xffff) != 0)
    fail(XIO_ERR_UNSUPPORTED, "namespace {} of {} is formatted with {} bytes of metadata; format it without", f.nsid,
         name, lbaf & 0xffff);
  if (lbads < 9 || lbads > 16)
    fail(XIO_ERR_UNSUPPORTED, "namespace {} of {} has blocks of 2^{} bytes; format it with 512 to 65536", f.nsid, name,
         lbads);
  f.block_bytes = 1u << lbads;
}

std::uint32_t choose_namespace(const unsigned char* list, std::uint32_t wanted, const std::string& name) {
  // The list is sorted, and 0 ends it.
  for (std::uint32_t i = 0; i < w::k_identify_bytes / 4; ++i) {
    const std::uint32_t nsid = field<std::uint32_t>(list, 4 * i);
    if (nsid == 0) break;
    if (wanted == 0 || wanted == nsid) return nsid;
  }
  if (wanted == 0) fail(XIO_ERR_IO, "{} has no active namespace; create one", name);
  fail(XIO_ERR_ARG, "{} has no active namespace {}; name one that it has", name, wanted);
}

void check_namespace(const drive_facts& f, const xio_storage_attr_t& attr, const std::string& name) {
  if ((attr.flags & (XIO_STORAGE_CREATE | XIO_STORAGE_TRUNCATE)) != 0)
    fail(XIO_ERR_ARG, "cannot open {}: only files are created or emptied; leave both flags out", name);
  if (attr.block_bytes != 0 && attr.block_bytes != f.block_bytes)
    fail(XIO_ERR_ARG, "cannot open {}: its blocks have {} bytes and not {}; ask for 0 or for what it has", name,
         f.block_bytes, attr.block_bytes);
  if (f.blocks == 0 || f.blocks > ~std::uint64_t{0} / f.block_bytes)
    fail(XIO_ERR_IO, "cannot open {}: it claims {} blocks of {} bytes, which cannot be; use another drive", name,
         f.blocks, f.block_bytes);
  if (f.transfer_bytes < f.block_bytes)
    fail(XIO_ERR_UNSUPPORTED, "cannot open {}: its commands carry {} bytes and its blocks have {}; use another drive",
         name, f.transfer_bytes, f.block_bytes);
  if (f.blocks * f.block_bytes < attr.bytes)
    fail(XIO_ERR_ARG, "cannot open {}: it has {} bytes and {} were asked for; ask for less, or use a larger drive",
         name, f.blocks * f.block_bytes, attr.bytes);
  if (f.read_only && (attr.flags & XIO_STORAGE_READ_ONLY) == 0)
    fail(XIO_ERR_ARG, "cannot open {}: the namespace is write protected; open it with XIO_STORAGE_READ_ONLY", name);
}

}  // namespace xio::nvme
