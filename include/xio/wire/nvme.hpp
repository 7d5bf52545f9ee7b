// SPDX-License-Identifier: MIT
// NVMe as bytes: registers, submission and completion queue entries, opcodes, status codes, PRP arithmetic.
// Sources: NVM Express Base Specification 2.0 (registers: 3.1.3, SQE: 3.3.3.1, CQE: 3.3.3.2, status: 3.3.3.2.1,
// PRP: 4.1.1, SGL: 4.1.2, admin commands: 5, features: 5.27, shadow doorbells: 5.8 and B.5) and NVM Command Set
// Specification 1.0 (3.2). Pure: no state.
#pragma once
#include <cstdint>

#include "xio/wire/endian.hpp"

namespace xio::wire::nvme {

// --- Registers (offsets in BAR0) ---------------------------------------------------------------------

constexpr std::uint32_t k_reg_cap = 0x00;  // 64 bits
constexpr std::uint32_t k_reg_vs = 0x08;
constexpr std::uint32_t k_reg_intms = 0x0c;
constexpr std::uint32_t k_reg_intmc = 0x10;
constexpr std::uint32_t k_reg_cc = 0x14;
constexpr std::uint32_t k_reg_csts = 0x1c;
constexpr std::uint32_t k_reg_nssr = 0x20;
constexpr std::uint32_t k_reg_aqa = 0x24;
constexpr std::uint32_t k_reg_asq = 0x28;  // 64 bits
constexpr std::uint32_t k_reg_acq = 0x30;  // 64 bits
constexpr std::uint32_t k_reg_crto = 0x68;
constexpr std::uint32_t k_reg_doorbells = 0x1000;

// Doorbell of queue `qid`; dstrd is CAP.DSTRD.
XIO_WIRE std::uint32_t sq_tail_doorbell(std::uint32_t qid, std::uint32_t dstrd) {
  return k_reg_doorbells + (2 * qid) * (4u << dstrd);
}
XIO_WIRE std::uint32_t cq_head_doorbell(std::uint32_t qid, std::uint32_t dstrd) {
  return k_reg_doorbells + (2 * qid + 1) * (4u << dstrd);
}

// CAP
XIO_WIRE std::uint32_t cap_mqes(std::uint64_t cap) { return static_cast<std::uint32_t>(cap & 0xffff); }  // 0-based
XIO_WIRE bool cap_cqr(std::uint64_t cap) { return (cap >> 16) & 1; }
XIO_WIRE std::uint32_t cap_to(std::uint64_t cap) { return static_cast<std::uint32_t>(cap >> 24) & 0xff; }  // 500 ms
// Whether CRTO says how long it takes to become ready with its media: bits 15:0, in 500 ms. TO cannot say more than 127
// s.
XIO_WIRE bool cap_crwms(std::uint64_t cap) { return (cap >> 59) & 1; }
XIO_WIRE std::uint32_t crto_crwmt(std::uint32_t crto) { return crto & 0xffff; }
XIO_WIRE std::uint32_t cap_dstrd(std::uint64_t cap) { return static_cast<std::uint32_t>(cap >> 32) & 0xf; }
XIO_WIRE std::uint32_t cap_css(std::uint64_t cap) { return static_cast<std::uint32_t>(cap >> 37) & 0xff; }
XIO_WIRE std::uint32_t cap_mpsmin(std::uint64_t cap) { return static_cast<std::uint32_t>(cap >> 48) & 0xf; }
XIO_WIRE std::uint32_t cap_mpsmax(std::uint64_t cap) { return static_cast<std::uint32_t>(cap >> 52) & 0xf; }
XIO_WIRE std::uint64_t make_cap(std::uint32_t mqes, bool cqr, std::uint32_t to, std::uint32_t dstrd,
                                std::uint32_t mpsmin, std::uint32_t mpsmax) {
  return (mqes & 0xffff) | (static_cast<std::uint64_t>(cqr) << 16) | (static_cast<std::uint64_t>(to & 0xff) << 24) |
         (static_cast<std::uint64_t>(dstrd & 0xf) << 32) | (std::uint64_t{1} << 37) |  // CSS bit 37: NVM command set
         (static_cast<std::uint64_t>(mpsmin & 0xf) << 48) | (static_cast<std::uint64_t>(mpsmax & 0xf) << 52);
}

// CC
constexpr std::uint32_t k_cc_en = 1;
XIO_WIRE std::uint32_t cc_css(std::uint32_t cc) { return (cc >> 4) & 7; }
XIO_WIRE std::uint32_t cc_mps(std::uint32_t cc) { return (cc >> 7) & 0xf; }  // page = 4 KiB << mps
XIO_WIRE std::uint32_t cc_ams(std::uint32_t cc) { return (cc >> 11) & 7; }
XIO_WIRE std::uint32_t cc_shn(std::uint32_t cc) { return (cc >> 14) & 3; }
XIO_WIRE std::uint32_t cc_iosqes(std::uint32_t cc) { return (cc >> 16) & 0xf; }
XIO_WIRE std::uint32_t cc_iocqes(std::uint32_t cc) { return (cc >> 20) & 0xf; }
// Enabled, NVM command set, 64-byte SQEs, 16-byte CQEs.
XIO_WIRE std::uint32_t make_cc(std::uint32_t mps) { return k_cc_en | (mps << 7) | (6u << 16) | (4u << 20); }
constexpr std::uint32_t k_cc_shn_mask = 3u << 14;
constexpr std::uint32_t k_cc_shn_normal = 1u << 14;
constexpr std::uint32_t k_cc_fixed_mask = 7u << 4 | 0xfu << 7 | 7u << 11;  // CSS, MPS, AMS: not while enabled
constexpr std::uint32_t k_cc_reserved = 0xfe00000e;

// CSTS
constexpr std::uint32_t k_csts_rdy = 1;
constexpr std::uint32_t k_csts_cfs = 2;
constexpr std::uint32_t k_csts_shst_mask = 3u << 2;
constexpr std::uint32_t k_csts_shst_complete = 2u << 2;

// AQA; entries are counts.
constexpr std::uint32_t k_aqa_reserved = 0xf000f000;
XIO_WIRE std::uint32_t make_aqa(std::uint32_t sq_entries, std::uint32_t cq_entries) {
  return (sq_entries - 1) | ((cq_entries - 1) << 16);
}
XIO_WIRE std::uint32_t aqa_sq_entries(std::uint32_t aqa) { return (aqa & 0xfff) + 1; }
XIO_WIRE std::uint32_t aqa_cq_entries(std::uint32_t aqa) { return ((aqa >> 16) & 0xfff) + 1; }

// --- Commands ----------------------------------------------------------------------------------------

enum class opcode : std::uint8_t {  // I/O, NVM command set
  flush = 0x00,
  write = 0x01,
  read = 0x02,
  compare = 0x05,
  write_zeroes = 0x08,
  dataset_management = 0x09,
};

enum class admin : std::uint8_t {
  delete_sq = 0x00,
  create_sq = 0x01,
  get_log_page = 0x02,
  delete_cq = 0x04,
  create_cq = 0x05,
  identify = 0x06,
  abort = 0x08,
  set_features = 0x09,
  get_features = 0x0a,
  async_event = 0x0c,
  doorbell_buffer_config = 0x7c,
};

enum class feature : std::uint8_t {  // 5.27.1
  arbitration = 0x01,
  power_management = 0x02,
  temperature_threshold = 0x04,
  error_recovery = 0x05,
  volatile_write_cache = 0x06,
  number_of_queues = 0x07,
  interrupt_coalescing = 0x08,
  interrupt_vector = 0x09,
  write_atomicity = 0x0a,
  async_event_configuration = 0x0b,
};
enum class cns : std::uint8_t { name_space = 0, controller = 1, active_namespaces = 2, namespace_descriptors = 3 };
enum class log_page : std::uint8_t { error_information = 0x01, health = 0x02, firmware_slot = 0x03 };  // 5.16.1

constexpr std::uint32_t k_broadcast_nsid = 0xffffffff;

// Submission queue entry: dw0 opcode 7:0, fuse 9:8, psdt 15:14, CID 31:16; dw1 NSID; dw4-5 MPTR; dw6-7 PRP1;
// dw8-9 PRP2; dw10-15 by command.
struct alignas(16) sqe {
  std::uint32_t dw[16];
};
static_assert(sizeof(sqe) == 64);

XIO_WIRE std::uint8_t opcode_of(const sqe& e) { return static_cast<std::uint8_t>(e.dw[0]); }
XIO_WIRE std::uint32_t fuse_of(const sqe& e) { return (e.dw[0] >> 8) & 3; }
XIO_WIRE std::uint32_t psdt_of(const sqe& e) { return e.dw[0] >> 14 & 3; }
XIO_WIRE std::uint16_t cid_of(const sqe& e) { return static_cast<std::uint16_t>(e.dw[0] >> 16); }
XIO_WIRE std::uint32_t nsid_of(const sqe& e) { return e.dw[1]; }
XIO_WIRE std::uint64_t mptr_of(const sqe& e) { return e.dw[4] | (static_cast<std::uint64_t>(e.dw[5]) << 32); }
XIO_WIRE std::uint64_t prp1_of(const sqe& e) { return e.dw[6] | (static_cast<std::uint64_t>(e.dw[7]) << 32); }
XIO_WIRE std::uint64_t prp2_of(const sqe& e) { return e.dw[8] | (static_cast<std::uint64_t>(e.dw[9]) << 32); }
XIO_WIRE std::uint64_t slba_of(const sqe& e) { return e.dw[10] | (static_cast<std::uint64_t>(e.dw[11]) << 32); }
XIO_WIRE std::uint32_t blocks_of(const sqe& e) { return (e.dw[12] & 0xffff) + 1; }

constexpr std::uint32_t k_force_unit_access = 1u << 30;  // dw12 of a read or write

// Everything but dw10 and up; PRPs, no fusing, no metadata.
XIO_WIRE sqe make_command(std::uint8_t op, std::uint32_t cid, std::uint32_t nsid, std::uint64_t prp1,
                          std::uint64_t prp2) {
  sqe e{};
  e.dw[0] = op | (cid << 16);
  e.dw[1] = nsid;
  e.dw[6] = static_cast<std::uint32_t>(prp1);
  e.dw[7] = static_cast<std::uint32_t>(prp1 >> 32);
  e.dw[8] = static_cast<std::uint32_t>(prp2);
  e.dw[9] = static_cast<std::uint32_t>(prp2 >> 32);
  return e;
}

// Read, write, compare and write zeroes; blocks is 1 .. 65536.
XIO_WIRE sqe make_io(opcode op, std::uint32_t cid, std::uint32_t nsid, std::uint64_t prp1, std::uint64_t prp2,
                     std::uint64_t slba, std::uint32_t blocks) {
  sqe e = make_command(static_cast<std::uint8_t>(op), cid, nsid, prp1, prp2);
  e.dw[10] = static_cast<std::uint32_t>(slba);
  e.dw[11] = static_cast<std::uint32_t>(slba >> 32);
  e.dw[12] = (blocks - 1) & 0xffff;
  return e;
}

// From opcode 80h on they are the vendor's (NVM command set 1.0, 3.2). Those of XIO's software drive do what the
// command without this bit does, of any bytes, which may lie at any address: dw10-11 say the first of them and dw12
// their count, less 1. Bits 1:0 of the opcode still say which way the data go.
constexpr std::uint32_t k_of_bytes = 0x80;
XIO_WIRE bool is_of_bytes(const sqe& e) { return (e.dw[0] & k_of_bytes) != 0; }
XIO_WIRE sqe of_bytes(sqe e, std::uint64_t offset, std::uint32_t bytes) {
  e.dw[0] |= k_of_bytes;
  e.dw[10] = static_cast<std::uint32_t>(offset);
  e.dw[11] = static_cast<std::uint32_t>(offset >> 32);
  e.dw[12] = bytes - 1;
  return e;
}

XIO_WIRE sqe make_identify(cns what, std::uint32_t nsid, std::uint64_t page) {
  sqe e = make_command(static_cast<std::uint8_t>(admin::identify), 0, nsid, page, 0);
  e.dw[10] = static_cast<std::uint32_t>(what);
  return e;
}

// Shadow doorbells (5.8): two pages that controller and driver share, laid out as the doorbells are.
XIO_WIRE sqe make_doorbell_buffer_config(std::uint64_t shadow, std::uint64_t event_index) {
  return make_command(static_cast<std::uint8_t>(admin::doorbell_buffer_config), 0, 0, shadow, event_index);
}
// Offset of a queue's word in both pages.
XIO_WIRE std::uint32_t shadow_sq_tail(std::uint32_t qid, std::uint32_t dstrd) {
  return sq_tail_doorbell(qid, dstrd) - k_reg_doorbells;
}
XIO_WIRE std::uint32_t shadow_cq_head(std::uint32_t qid, std::uint32_t dstrd) {
  return cq_head_doorbell(qid, dstrd) - k_reg_doorbells;
}
// B.5: after the shadow word went from `before` to `now`, does the register want to be written? Only if the
// controller's EventIdx was passed on the way.
XIO_WIRE bool shadow_wants_doorbell(std::uint32_t now, std::uint32_t before, std::uint32_t event_index) {
  return static_cast<std::uint16_t>(now - event_index - 1) < static_cast<std::uint16_t>(now - before);
}

// `bytes` is a multiple of 4; retain leaves the asynchronous event of that page masked (5.16).
XIO_WIRE sqe make_get_log_page(log_page page, std::uint32_t bytes, bool retain, std::uint64_t prp1) {
  sqe e = make_command(static_cast<std::uint8_t>(admin::get_log_page), 0, 0xffffffff, prp1, 0);
  const std::uint32_t dwords = bytes / 4 - 1;
  e.dw[10] = static_cast<std::uint32_t>(page) | (retain ? 1u << 15 : 0u) | (dwords & 0xffff) << 16;
  e.dw[11] = dwords >> 16;
  return e;
}
constexpr std::uint32_t k_log_retain = 1u << 15;
XIO_WIRE sqe make_async_event() { return make_command(static_cast<std::uint8_t>(admin::async_event), 0, 0, 0, 0); }
XIO_WIRE sqe make_abort(std::uint32_t sqid, std::uint32_t cid) {
  sqe e = make_command(static_cast<std::uint8_t>(admin::abort), 0, 0, 0, 0);
  e.dw[10] = (sqid & 0xffff) | (cid << 16);
  return e;
}

// Physically contiguous queues, no interrupts.
XIO_WIRE sqe make_create_cq(std::uint32_t qid, std::uint32_t entries, std::uint64_t base) {
  sqe e = make_command(static_cast<std::uint8_t>(admin::create_cq), 0, 0, base, 0);
  e.dw[10] = qid | ((entries - 1) << 16);
  e.dw[11] = 1;
  return e;
}
XIO_WIRE sqe make_create_sq(std::uint32_t qid, std::uint32_t entries, std::uint64_t base, std::uint32_t cqid) {
  sqe e = make_command(static_cast<std::uint8_t>(admin::create_sq), 0, 0, base, 0);
  e.dw[10] = qid | ((entries - 1) << 16);
  e.dw[11] = 1 | (cqid << 16);
  return e;
}
XIO_WIRE sqe make_delete_queue(admin which, std::uint32_t qid) {
  sqe e = make_command(static_cast<std::uint8_t>(which), 0, 0, 0, 0);
  e.dw[10] = qid;
  return e;
}
XIO_WIRE sqe make_set_features(feature f, std::uint32_t dw11) {
  sqe e = make_command(static_cast<std::uint8_t>(admin::set_features), 0, 0, 0, 0);
  e.dw[10] = static_cast<std::uint32_t>(f);
  e.dw[11] = dw11;
  return e;
}
XIO_WIRE sqe make_get_features(feature f) {
  sqe e = make_command(static_cast<std::uint8_t>(admin::get_features), 0, 0, 0, 0);
  e.dw[10] = static_cast<std::uint32_t>(f);
  return e;
}
constexpr std::uint32_t k_feature_save = 1u << 31;  // dw10 of Set Features
// Number of Queues, in the command and in its completion: the arguments are counts, not 0-based.
XIO_WIRE std::uint32_t make_queue_counts(std::uint32_t sqs, std::uint32_t cqs) {
  return ((sqs - 1) & 0xffff) | ((cqs - 1) << 16);
}
XIO_WIRE std::uint32_t queue_counts_sqs(std::uint32_t dw) { return (dw & 0xffff) + 1; }
XIO_WIRE std::uint32_t queue_counts_cqs(std::uint32_t dw) { return (dw >> 16) + 1; }

// --- Completions -------------------------------------------------------------------------------------

// Completion queue entry: dw0 result; dw2 SQHD 15:0, SQID 31:16; dw3 CID 15:0, phase 16, status 31:17.
struct alignas(16) cqe {
  std::uint32_t dw[4];
};
static_assert(sizeof(cqe) == 16);

// The 15 status bits of dw3 as one number: SC 7:0, SCT 10:8, CRD 12:11, M 13, DNR 14.
constexpr std::uint32_t k_status_dnr = 1u << 14;
XIO_WIRE std::uint32_t status_code(std::uint32_t status) { return status & 0x7ff; }  // SCT<<8 | SC

XIO_WIRE std::uint16_t cqe_cid(std::uint32_t dw3) { return static_cast<std::uint16_t>(dw3); }
XIO_WIRE std::uint32_t cqe_phase(std::uint32_t dw3) { return (dw3 >> 16) & 1; }
XIO_WIRE std::uint32_t cqe_status(std::uint32_t dw3) { return dw3 >> 17; }
XIO_WIRE cqe make_cqe(std::uint32_t result, std::uint32_t sqhd, std::uint32_t sqid, std::uint32_t cid,
                      std::uint32_t phase, std::uint32_t status) {
  return cqe{{result, 0, (sqhd & 0xffff) | (sqid << 16), (cid & 0xffff) | (phase << 16) | (status << 17)}};
}

// SCT<<8 | SC (base 2.0, 3.3.3.2.1; from 0x80 in the low byte: NVM command set 1.0, 2.1)
enum : std::uint32_t {
  k_ok = 0x000,
  k_invalid_opcode = 0x001,
  k_invalid_field = 0x002,
  k_cid_conflict = 0x003,
  k_data_transfer_error = 0x004,
  k_internal_error = 0x006,
  k_aborted = 0x007,
  k_aborted_sq_deletion = 0x008,
  k_invalid_namespace = 0x00b,
  k_command_sequence_error = 0x00c,
  k_invalid_sgl_segment = 0x00d,
  k_invalid_sgl_count = 0x00e,
  k_invalid_sgl_length = 0x00f,
  k_invalid_sgl_type = 0x011,
  k_invalid_prp_offset = 0x013,
  k_invalid_sgl_granularity = 0x01e,
  k_namespace_write_protected = 0x020,
  k_transient_transport_error = 0x022,
  k_lba_out_of_range = 0x080,
  k_capacity_exceeded = 0x081,
  k_namespace_not_ready = 0x082,
  k_cq_invalid = 0x100,
  k_invalid_queue_id = 0x101,
  k_invalid_queue_size = 0x102,
  k_event_limit_exceeded = 0x105,
  k_invalid_interrupt_vector = 0x108,
  k_invalid_log_page = 0x109,
  k_invalid_queue_deletion = 0x10c,
  k_feature_not_saveable = 0x10d,
  k_feature_not_changeable = 0x10e,
  k_write_fault = 0x280,
  k_unrecovered_read = 0x281,
  k_compare_failure = 0x285,
};

// Asynchronous event, dw0 of its completion: type 2:0, information 15:8, log page 23:16.
constexpr std::uint32_t k_event_invalid_doorbell_register = 0x00 << 8 | 0x01 << 16;
constexpr std::uint32_t k_event_invalid_doorbell_value = 0x01 << 8 | 0x01 << 16;

// --- Identify: byte offsets in the 4 KiB of data that it returns --------------------------------------

constexpr std::uint32_t k_identify_bytes = 4096;
// Controller
constexpr std::uint32_t k_id_vid = 0;
constexpr std::uint32_t k_id_sn = 4;           // 20 characters
constexpr std::uint32_t k_id_mn = 24;          // 40 characters
constexpr std::uint32_t k_id_fr = 64;          // 8 characters
constexpr std::uint32_t k_id_mdts = 77;        // log2 of pages of CAP.MPSMIN; 0 = no limit
constexpr std::uint32_t k_id_ver = 80;         // as the register VS
constexpr std::uint32_t k_id_cntrltype = 111;  // 1: I/O controller
constexpr std::uint32_t k_id_oacs = 256;
constexpr std::uint32_t k_id_acl = 258;   // 0-based
constexpr std::uint32_t k_id_aerl = 259;  // 0-based
constexpr std::uint32_t k_id_lpa = 261;
constexpr std::uint32_t k_id_elpe = 262;  // 0-based
constexpr std::uint32_t k_id_sqes = 512;
constexpr std::uint32_t k_id_cqes = 513;
constexpr std::uint32_t k_id_nn = 516;
constexpr std::uint32_t k_id_oncs = 520;
constexpr std::uint32_t k_id_vwc = 525;
constexpr std::uint32_t k_id_sgls = 536;
constexpr std::uint32_t k_id_subnqn = 768;  // 256 characters
constexpr std::uint16_t k_oacs_doorbell_buffer_config = 1 << 8;
constexpr std::uint8_t k_lpa_extended = 1 << 2;  // Get Log Page takes offsets and long lengths
constexpr std::uint16_t k_oncs_compare = 1 << 0;
constexpr std::uint16_t k_oncs_dataset_management = 1 << 2;
constexpr std::uint16_t k_oncs_write_zeroes = 1 << 3;
constexpr std::uint8_t k_vwc_present = 1 << 0;
constexpr std::uint8_t k_vwc_flush_all = 3 << 1;  // Flush takes the broadcast NSID
// SGLS 1:0: 1 = SGLs in I/O commands, any alignment; 2 = data blocks in whole dwords
XIO_WIRE bool sgls_supported(std::uint32_t sgls) { return (sgls & 3) == 1 || (sgls & 3) == 2; }
XIO_WIRE bool sgls_dwords_only(std::uint32_t sgls) { return (sgls & 3) == 2; }
// Namespace
constexpr std::uint32_t k_id_nsze = 0;  // in blocks
constexpr std::uint32_t k_id_ncap = 8;
constexpr std::uint32_t k_id_nuse = 16;
constexpr std::uint32_t k_id_nlbaf = 25;
constexpr std::uint32_t k_id_flbas = 26;   // 3:0 index of the format in use, 6:5 its upper bits
constexpr std::uint32_t k_id_nmic = 30;    // bit 0: several controllers may have it
constexpr std::uint32_t k_id_nsattr = 99;  // bit 0: write protected
constexpr std::uint32_t k_id_nguid = 104;  // 16 bytes
constexpr std::uint32_t k_id_eui64 = 120;  // 8 bytes
constexpr std::uint32_t k_id_lbaf = 128;   // 4 bytes each: MS 15:0, LBADS 23:16

// Index of the format in use (NVM command set 1.0, 4.1.5.1). Drives of up to 16 formats may have anything in the upper
// bits.
XIO_WIRE std::uint32_t format_in_use(std::uint32_t flbas, std::uint32_t nlbaf) {
  return (flbas & 0xf) | (nlbaf > 15 ? (flbas >> 5 & 3) << 4 : 0);
}

// --- PRP ---------------------------------------------------------------------------------------------

constexpr std::uint32_t k_prp_align = 4;  // of a data pointer's offset in its page

// Pages that `bytes` (not 0) at `bus` touch.
XIO_WIRE std::uint64_t prp_pages(std::uint64_t bus, std::uint64_t bytes, std::uint64_t page) {
  return ((bus & (page - 1)) + bytes + page - 1) / page;
}
// Address of the i-th page touched, i >= 1: the entries after PRP1 have no offset.
XIO_WIRE std::uint64_t prp_entry(std::uint64_t bus, std::uint64_t i, std::uint64_t page) {
  return (bus & ~(page - 1)) + i * page;
}
// Bytes of the list of the longest transfer at the worst offset: pages of it, PRP1 being the first of one more.
XIO_WIRE std::uint64_t prp_list_bytes(std::uint64_t transfer_bytes, std::uint64_t page) {
  return transfer_bytes / page * 8;
}

// A list of n entries (pages after the first) in contiguous list pages: every page but the last gives its last entry to
// the bus address of the next (4.1.1).
XIO_WIRE std::uint64_t prp_list_pages(std::uint64_t n, std::uint64_t page) {
  const std::uint64_t all = page / 8;
  return n <= all ? 1 : (n - 1 + all - 2) / (all - 1);
}
// Where entry i (from 0) of the n is, in entries from the start of the first list page.
XIO_WIRE std::uint64_t prp_list_slot(std::uint64_t i, std::uint64_t n, std::uint64_t page) {
  const std::uint64_t all = page / 8;
  const std::uint64_t last = prp_list_pages(n, page) - 1;
  const std::uint64_t at = i / (all - 1) < last ? i / (all - 1) : last;
  return at * all + (i - at * (all - 1));
}
// Where list page p (from 0, not the last) points to the next.
XIO_WIRE std::uint64_t prp_list_link(std::uint64_t p, std::uint64_t page) { return (p + 1) * (page / 8) - 1; }

// --- SGL (4.1.2) -------------------------------------------------------------------------------------

// Bytes 0-7 address, 8-11 length, 15 type 7:4 and sub type 3:0.
struct alignas(16) sgl_descriptor {
  std::uint32_t dw[4];
};
static_assert(sizeof(sgl_descriptor) == 16);

enum class sgl : std::uint8_t { data_block = 0, bit_bucket = 1, segment = 2, last_segment = 3 };

XIO_WIRE sgl_descriptor make_sgl(sgl type, std::uint64_t bus, std::uint32_t bytes) {
  return sgl_descriptor{{static_cast<std::uint32_t>(bus), static_cast<std::uint32_t>(bus >> 32), bytes,
                         static_cast<std::uint32_t>(type) << 28}};
}
XIO_WIRE std::uint64_t sgl_address(const sgl_descriptor& d) {
  return d.dw[0] | (static_cast<std::uint64_t>(d.dw[1]) << 32);
}
XIO_WIRE std::uint32_t sgl_bytes(const sgl_descriptor& d) { return d.dw[2]; }
XIO_WIRE std::uint32_t sgl_type(const sgl_descriptor& d) { return d.dw[3] >> 28; }
XIO_WIRE std::uint32_t sgl_subtype(const sgl_descriptor& d) { return d.dw[3] >> 24 & 0xf; }

constexpr std::uint32_t k_psdt_sgl = 1u << 14;  // dw0 15:14 = 01b: the data pointer is an SGL descriptor

XIO_WIRE sgl_descriptor sgl_of(const sqe& e) { return sgl_descriptor{{e.dw[6], e.dw[7], e.dw[8], e.dw[9]}}; }
// The command's data pointer becomes that descriptor.
XIO_WIRE sqe with_sgl(sqe e, const sgl_descriptor& d) {
  e.dw[0] |= k_psdt_sgl;
  for (int i = 0; i < 4; ++i) e.dw[6 + i] = d.dw[i];
  return e;
}

}  // namespace xio::wire::nvme
