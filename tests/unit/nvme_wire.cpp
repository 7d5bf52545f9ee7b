// SPDX-License-Identifier: MIT
// NVMe bytes against the tables of the specifications; every expected number is written out here by hand.
#include "../gtest.hpp"
#include "xio/wire/nvme.hpp"

namespace n = xio::wire::nvme;

namespace {

std::vector<unsigned> bytes_of(const void* p, std::size_t n) {
  const auto* b = static_cast<const unsigned char*>(p);
  return {b, b + n};
}

}  // namespace

// NVMe base 2.0, 3.3.3.1 and NVM command set 1.0, 3.2.4: opcode 02h, CID in bytes 2-3, NSID in 4-7, PRP1 in 24-31,
// PRP2 in 32-39, SLBA in 40-47, NLB (0-based) in 48-49.
TEST(nvme_wire, read_command) {
  const n::sqe e = n::make_io(n::opcode::read, 0xabcd, 0x01020304, 0x1122334455667788, 0x99aabbccddeeff00,
                              0x0807060504030201, 0x100);
  const std::vector<unsigned> want = {0x02, 0x00, 0xcd, 0xab, 0x04, 0x03, 0x02, 0x01,  // opcode, flags, CID, NSID
                                      0,    0,    0,    0,    0,    0,    0,    0,     // dw2-3
                                      0,    0,    0,    0,    0,    0,    0,    0,     // MPTR
                                      0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,  // PRP1
                                      0x00, 0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99,  // PRP2
                                      0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,  // SLBA
                                      0xff, 0x00, 0,    0,    0,    0,    0,    0,     // NLB, dw13
                                      0,    0,    0,    0,    0,    0,    0,    0};
  EXPECT_EQ(bytes_of(&e, 64), want);
}

TEST(nvme_wire, write_and_flush_opcodes) {
  EXPECT_EQ(bytes_of(n::make_io(n::opcode::write, 1, 1, 0, 0, 0, 65536).dw, 2), (std::vector<unsigned>{0x01, 0x00}));
  EXPECT_EQ(n::make_io(n::opcode::write, 1, 1, 0, 0, 0, 65536).dw[12], 0xffffu);
  const n::sqe f = n::make_command(static_cast<std::uint8_t>(n::opcode::flush), 7, 1, 0, 0);
  EXPECT_PAIRS((f.dw[0], 0x00070000u), (f.dw[1], 1u));
}

// Base 2.0, 5.4 and 5.5: QID 15:0 and QSIZE 31:16 (0-based) in dw10; PC bit 0, CQID 31:16 in dw11.
TEST(nvme_wire, create_queues) {
  const n::sqe cq = n::make_create_cq(3, 512, 0xfedc000);
  EXPECT_PAIRS((cq.dw[0], 0x05u), (cq.dw[6], 0xfedc000u), (cq.dw[10], 0x01ff0003u), (cq.dw[11], 0x1u));
  const n::sqe sq = n::make_create_sq(4, 256, 0x1000, 3);
  EXPECT_PAIRS((sq.dw[0], 0x01u), (sq.dw[10], 0x00ff0004u), (sq.dw[11], 0x00030001u));
  EXPECT_EQ(n::make_delete_queue(n::admin::delete_sq, 9).dw[0], 0x00u);
  EXPECT_EQ(n::make_delete_queue(n::admin::delete_cq, 9).dw[0], 0x04u);
  EXPECT_EQ(n::make_delete_queue(n::admin::delete_cq, 9).dw[10], 9u);
}

// Base 2.0, 5.17 (CNS 0 namespace, 1 controller, 2 list) and 5.27.1.5 (feature 07h, 0-based counts).
TEST(nvme_wire, identify_and_features) {
  const n::sqe id = n::make_identify(n::cns::controller, 0, 0x2000);
  EXPECT_PAIRS((id.dw[0], 0x06u), (id.dw[10], 1u), (static_cast<int>(n::cns::name_space), 0),
               (static_cast<int>(n::cns::active_namespaces), 2));
  const n::sqe set = n::make_set_features(n::feature::number_of_queues, n::make_queue_counts(4, 8));
  EXPECT_PAIRS((set.dw[0], 0x09u), (set.dw[10], 0x07u), (set.dw[11], 0x00070003u),
               (n::queue_counts_sqs(0x00070003), 4u), (n::queue_counts_cqs(0x00070003), 8u));
}

// Base 2.0, 3.1.3: CAP MQES 15:0, CQR 16, TO 31:24, DSTRD 35:32, CSS 44:37, MPSMIN 51:48, MPSMAX 55:52.
TEST(nvme_wire, registers) {
  EXPECT_EQ(n::make_cap(0x0fff, true, 0x14, 2, 0, 4), 0x0040002214010fffull);
  const std::uint64_t cap = 0x0041002214010fffull;
  EXPECT_EQ(n::cap_mqes(cap), 0xfffu);
  EXPECT_TRUE(n::cap_cqr(cap));
  EXPECT_PAIRS((n::cap_to(cap), 0x14u), (n::cap_dstrd(cap), 2u), (n::cap_css(cap), 1u), (n::cap_mpsmin(cap), 1u),
               (n::cap_mpsmax(cap), 4u));
  // CRMS 60:59 and CRTO's CRWMT 15:0 (3.1.3.1, 3.1.3.24).
  EXPECT_FALSE(n::cap_crwms(cap) || n::cap_crwms(1ull << 60));
  EXPECT_TRUE(n::cap_crwms(1ull << 59));
  EXPECT_EQ(n::crto_crwmt(0x0001012c), 300u);
  EXPECT_EQ(n::make_cc(0), 0x00460001u);  // EN, IOSQES 6, IOCQES 4
  EXPECT_EQ(n::make_cc(1), 0x00460081u);
  EXPECT_PAIRS((n::cc_iosqes(0x00460001), 6u), (n::cc_iocqes(0x00460001), 4u), (n::cc_shn(0x00464001), 1u));
  EXPECT_PAIRS((n::make_aqa(32, 64), 0x003f001fu), (n::aqa_sq_entries(0x003f001f), 32u),
               (n::aqa_cq_entries(0x003f001f), 64u));
  // 3.1.3: SQyTDBL at 1000h + 2y(4 << DSTRD), CQyHDBL at 1000h + (2y+1)(4 << DSTRD).
  EXPECT_PAIRS((n::sq_tail_doorbell(0, 0), 0x1000u), (n::cq_head_doorbell(0, 0), 0x1004u),
               (n::sq_tail_doorbell(3, 0), 0x1018u), (n::cq_head_doorbell(3, 1), 0x1038u));
}

// Base 2.0, 3.3.3.2: SQHD 15:0 and SQID 31:16 of dw2; CID 15:0, P 16, SC 24:17, SCT 27:25, M 30, DNR 31 of dw3.
TEST(nvme_wire, completion) {
  const n::cqe e = n::make_cqe(0xdeadbeef, 0x1234, 0x0005, 0xabcd, 1, n::k_unrecovered_read | n::k_status_dnr);
  EXPECT_PAIRS((e.dw[0], 0xdeadbeefu), (e.dw[1], 0u), (e.dw[2], 0x00051234u));
  EXPECT_EQ(e.dw[3], 0x8503abcdu);  // DNR; SCT 2, SC 81h; P
  EXPECT_PAIRS((n::cqe_cid(0x8503abcd), 0xabcd), (n::cqe_phase(0x8503abcd), 1u),
               (n::status_code(n::cqe_status(0x8503abcd)), 0x281u), (n::cqe_phase(0x8502abcd), 0u));
}

// Base 2.0, 4.1.1: pages touched by a transfer, and the addresses after the first.
TEST(nvme_wire, prp_pages) {
  EXPECT_PAIRS((n::prp_pages(0x1000, 4096, 4096), 1u), (n::prp_pages(0x1004, 4096, 4096), 2u),
               (n::prp_pages(0x1ffc, 4, 4096), 1u), (n::prp_pages(0x1ffc, 8, 4096), 2u),
               (n::prp_pages(0x1000, 1 << 20, 4096), 256u), (n::prp_pages(0x1e00, 1 << 20, 4096), 257u),
               (n::prp_entry(0x1e00, 1, 4096), 0x2000u), (n::prp_entry(0x1e00, 256, 4096), 0x101000u));
  EXPECT_EQ(n::prp_list_bytes(1 << 20, 4096), 2048u);  // 256 entries of 8 bytes
}

// 4.1.1: the last entry of a list page points to the next page if more than one page of data is left.
TEST(nvme_wire, chained_prp_lists) {
  // 512 entries fit in one page; the 513th needs a second, whose first entry is the 512th.
  EXPECT_PAIRS((n::prp_list_pages(1, 4096), 1u), (n::prp_list_pages(512, 4096), 1u), (n::prp_list_pages(513, 4096), 2u),
               (n::prp_list_pages(511 + 512, 4096), 2u), (n::prp_list_pages(511 + 513, 4096), 3u),
               (n::prp_list_slot(511, 512, 4096), 511u), (n::prp_list_slot(510, 513, 4096), 510u),
               (n::prp_list_slot(511, 513, 4096), 512u), (n::prp_list_slot(512, 513, 4096), 513u),
               (n::prp_list_slot(1022, 1023, 4096), 1023u), (n::prp_list_slot(1022, 1024, 4096), 1024u),
               (n::prp_list_link(0, 4096), 511u), (n::prp_list_link(1, 4096), 1023u));
}

// 4.1.2: address in bytes 0-7, length in 8-11, type in bits 7:4 and sub type in 3:0 of byte 15. PSDT is bits 15:14 of
// dw0; the descriptor of the command is dw6 to dw9.
TEST(nvme_wire, sgl_descriptors) {
  const n::sgl_descriptor d = n::make_sgl(n::sgl::last_segment, 0x1122334455667788, 0x12345670);
  const std::vector<unsigned> want = {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
                                      0x70, 0x56, 0x34, 0x12, 0,    0,    0,    0x30};
  EXPECT_PAIRS((bytes_of(&d, 16), want), (n::make_sgl(n::sgl::segment, 0, 0).dw[3], 0x20000000u),
               (n::sgl_type({{0, 0, 0, 0x3a000000}}), 3u), (n::sgl_subtype({{0, 0, 0, 0x3a000000}}), 10u));
  const n::sqe e = n::with_sgl(n::make_io(n::opcode::compare, 5, 1, 0, 0, 0, 1), d);
  EXPECT_PAIRS((e.dw[0], 0x00054005u), (bytes_of(&e.dw[6], 16), want),
               (n::sgl_address(n::sgl_of(e)), 0x1122334455667788u), (n::sgl_bytes(n::sgl_of(e)), 0x12345670u));
  EXPECT_FALSE(n::sgls_supported(0));
  EXPECT_TRUE(n::sgls_supported(1));
  EXPECT_TRUE(n::sgls_supported(0x40002));
  EXPECT_FALSE(n::sgls_supported(3));
  EXPECT_TRUE(n::sgls_dwords_only(2));
  EXPECT_FALSE(n::sgls_dwords_only(1));
}

// Base 2.0, 5.8 (PRP1 shadow, PRP2 EventIdx) and B.5: a doorbell is wanted when EventIdx lies in [before, now).
// NVM command set 1.0, 4.1.5.1: FLBAS 3:0 and, of more than 16 formats (NLBAF is 0-based), 6:5 above them.
TEST(nvme_wire, formatted_lba_size) {
  EXPECT_EQ(n::format_in_use(0x00, 0), 0u);
  EXPECT_EQ(n::format_in_use(0x13, 4), 3u);    // bit 4: where metadata are
  EXPECT_EQ(n::format_in_use(0x63, 15), 3u);   // 16 formats
  EXPECT_EQ(n::format_in_use(0x23, 16), 19u);  // 17
  EXPECT_EQ(n::format_in_use(0x7f, 63), 63u);
}

TEST(nvme_wire, shadow_doorbells) {
  const n::sqe e = n::make_doorbell_buffer_config(0x7000, 0x8000);
  EXPECT_PAIRS((e.dw[0], 0x7cu), (e.dw[6], 0x7000u), (e.dw[8], 0x8000u), (n::shadow_sq_tail(1, 0), 0x8u),
               (n::shadow_cq_head(1, 0), 0xcu), (n::shadow_cq_head(2, 1), 0x28u));
  EXPECT_TRUE(n::shadow_wants_doorbell(1, 0, 0));
  EXPECT_TRUE(n::shadow_wants_doorbell(9, 4, 4));
  EXPECT_TRUE(n::shadow_wants_doorbell(9, 4, 8));
  EXPECT_FALSE(n::shadow_wants_doorbell(9, 4, 9));
  EXPECT_FALSE(n::shadow_wants_doorbell(9, 4, 3));
  // Around the end of a queue of 256: from 250 to 2.
  EXPECT_TRUE(n::shadow_wants_doorbell(2, 250, 250));
  EXPECT_TRUE(n::shadow_wants_doorbell(2, 250, 1));
  EXPECT_FALSE(n::shadow_wants_doorbell(2, 250, 249));
  EXPECT_FALSE(n::shadow_wants_doorbell(2, 250, 2));
}

// Base 2.0, 5.16 (LID 7:0, RAE 15, NUMDL 31:16 of dw10; NUMDU 15:0 of dw11), 5.1 (SQID 15:0, CID 31:16), 5.15.
TEST(nvme_wire, log_pages_events_aborts) {
  const n::sqe log = n::make_get_log_page(n::log_page::error_information, 64, true, 0x3000);
  EXPECT_PAIRS((log.dw[0], 0x02u), (log.dw[6], 0x3000u), (log.dw[10], 0x000f8001u));
  EXPECT_PAIRS((n::make_get_log_page(n::log_page::health, 512, false, 0).dw[10], 0x007f0002u),
               (n::make_async_event().dw[0], 0x0cu), (n::make_abort(3, 0x1234).dw[0], 0x08u),
               (n::make_abort(3, 0x1234).dw[10], 0x12340003u),
               (n::make_get_features(n::feature::volatile_write_cache).dw[0], 0x0au),
               (n::make_get_features(n::feature::volatile_write_cache).dw[10], 0x06u));
}
