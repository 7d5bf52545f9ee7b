// SPDX-License-Identifier: MIT
// The sentence by which the host reports a failure in a kernel. Codes are written as numbers here, from the
// specifications and the Linux drivers' headers that xio/wire/ names, not as our own constants.
#include "ctx/failure_text.hpp"
#include "ctx/call_text.hpp"
#include "says.hpp"
#include "transport/nvme/status_text.hpp"
#include "transport/rdma/vendor_text.hpp"
#include "transport/sdma/vendor_text.hpp"

namespace xio {
namespace {

using dev::ring_kind;
using xio::test::says;

struct known {
  ring_kind kind;
  std::uint32_t vendor;
  const char* words;
};

TEST(failure_text, every_family_has_its_own_numbers) {
  const known codes[] = {
      {ring_kind::mlx5, 0x01, "local length"},
      {ring_kind::mlx5, 0x04, "local protection"},
      {ring_kind::mlx5, 0x05, "flushed"},
      {ring_kind::mlx5, 0x13, "remote access"},
      {ring_kind::mlx5, 0x8813, "remote access"},
      {ring_kind::mlx5, 0x15, "retry counter exceeded"},
      {ring_kind::mlx5, 0x16, "receiver not ready"},
      {ring_kind::mlx5, 0x10004, "no NIC of this family"},
      {ring_kind::mlx5, 0x2abcd, "no NIC of this"},
      {ring_kind::mlx5, 0x33, "does not have"},
      {ring_kind::bnxt, 0x2, "local length"},
      {ring_kind::bnxt, 0x4, "local protection"},
      {ring_kind::bnxt, 0x7, "remote access"},
      {ring_kind::bnxt, 0x9, "receiver not ready"},
      {ring_kind::bnxt, 0xa, "retry counter exceeded"},
      {ring_kind::bnxt, 0xb, "flushed"},
      {ring_kind::bnxt, 0x40000, "fatal error"},
      {ring_kind::bnxt, 0x10003, "no NIC of this family"},
      {ring_kind::bnxt, 0x2ffff, "no NIC of this"},
      {ring_kind::bnxt, 0x5, "memory management"},
      {ring_kind::ionic, 1, "local length"},
      {ring_kind::ionic, 4, "flushed"},
      {ring_kind::ionic, 9, "remote access"},
      {ring_kind::ionic, 11, "retry counter exceeded"},
      {ring_kind::ionic, 12, "receiver not ready"},
      {ring_kind::ionic, 0x10002, "no NIC of this family"},
      {ring_kind::ernic, 4, "local protection"},
      {ring_kind::ernic, 5, "flushed"},
      {ring_kind::ernic, 10, "remote access"},
      {ring_kind::ernic, 0x77000c, "retry counter exceeded"},
      {ring_kind::ernic, 19, "fatal error"},
      {ring_kind::ernic, 0x10000, "no NIC of this family"},
      {ring_kind::proxy, 4, "flushed"},
      {ring_kind::proxy, 6, "remote access"},
      {ring_kind::proxy, 0x8808, "retry counter"},
      {ring_kind::proxy, 9, "receiver not ready"},
      {ring_kind::proxy, 0x20000, "no NIC of this"},
      {ring_kind::proxy, 0xff, "does not have"},
  };
  for (const known& k : codes) {
    const std::string got = rdma::vendor_text(k.kind, k.vendor);
    EXPECT_PRED2(says, got, k.words) << rdma::family_name(k.kind) << " " << k.vendor;
    char code[16];
    std::snprintf(code, sizeof code, "(code %#x)", k.vendor);
    EXPECT_PRED2(says, got, code);
  }
}

TEST(failure_text, what_only_xio_can_mend_asks_for_a_report) {
  EXPECT_PRED2(says, rdma::vendor_text(ring_kind::mlx5, 0x01), "; this should not happen: report it");
  EXPECT_PRED2(says, rdma::vendor_text(ring_kind::ionic, 0x20001), "report it");
  EXPECT_FALSE(says(rdma::vendor_text(ring_kind::mlx5, 0x13), "report it"));
  EXPECT_FALSE(says(rdma::vendor_text(ring_kind::bnxt, 0x40000), "report it"));
}

TEST(failure_text, a_drive_s_status_by_the_specification) {
  EXPECT_PRED2(says, nvme::status_text(0x281), "unrecovered read error (status 0x281); ");
  EXPECT_PRED2(says, nvme::status_text(0x280), "write fault");
  EXPECT_PRED2(says, nvme::status_text(0x285), "compare failure");
  EXPECT_PRED2(says, nvme::status_text(0x080), "out of range");
  EXPECT_PRED2(says, nvme::status_text(0x002), "invalid field in command (status 0x2); this should not happen");
  EXPECT_PRED2(says, nvme::status_text(0x7ff), "status 0x7ff; look at the drive's error log");
}

struct of_rings : testing::Test {
  std::string of(ring_kind kind, xio_status_t status, const char* engine, std::uint32_t vendor, bool stopped,
                 const std::string& to = "") {
    dev::ring_view ring{};
    ring.kind = kind;
    ring.id = 26;
    const xio_error_info_t info{sizeof info, status, engine, 26, vendor, 12, ""};
    return failure_text(ring, info, stopped, to);
  }
};

TEST_F(of_rings, name_queue_op_and_peer) {
  EXPECT_EQ(
      of(ring_kind::mlx5, XIO_ERR_TRANSPORT, "rdma", 0x15, true, " to PE 1"),
      "rdma queue 26 (mlx5) to PE 1: op 12 failed: transport retry counter exceeded: the peer's NIC does not reply; "
      "look whether the peer runs and both ports are up (code 0x15)");
  EXPECT_EQ(
      of(ring_kind::nvme, XIO_ERR_STORAGE, "nvme", 0x281, false),
      "nvme queue 26: op 12 failed: unrecovered read error (status 0x281); the data there are lost; write the blocks "
      "again, and look at the drive's health");
  // Dword 3 of a completion: command id 0x123 below, phase and status above.
  EXPECT_PRED2(says, of(ring_kind::nvme, XIO_ERR_TRANSPORT, "nvme", 0x10123, true),
               "command 291, which is not under way");
  EXPECT_PRED2(says, of(ring_kind::sdma, XIO_ERR_INTERNAL, "sdma", 0xdead, true), "it holds 0xdead");
  EXPECT_PRED2(says, of(ring_kind::sdma, XIO_ERR_TRANSPORT, "sdma", 11, true, " to PE 3"),
               "sdma queue 26 to PE 3: op 12 failed: ");
}

TEST_F(of_rings, a_timeout_says_which_limit_it_was) {
  for (const ring_kind kind : {ring_kind::mlx5, ring_kind::sdma, ring_kind::nvme}) {
    const std::string got = of(kind, XIO_ERR_TIMEOUT, "x", 0, true);
    EXPECT_PRED2(says, got, "op 12 was not complete within XIO_TIMEOUT_MS");
    EXPECT_PRED2(says, got, "or raise it");
  }
}

TEST(failure_text, all_of_them_fit) {
  xio_error_info_t info = XIO_ERROR_INFO_INIT;
  std::size_t longest = 0;
  dev::ring_view ring{};
  ring.id = ~0u;
  for (const ring_kind kind : {ring_kind::mlx5, ring_kind::bnxt, ring_kind::ionic, ring_kind::ernic, ring_kind::proxy,
                               ring_kind::sdma, ring_kind::nvme})
    for (std::uint32_t code = 0; code < 0x800; ++code)
      for (const xio_status_t status : {XIO_ERR_TRANSPORT, XIO_ERR_TIMEOUT, XIO_ERR_INTERNAL, XIO_ERR_STORAGE}) {
        ring.kind = kind;
        info = {sizeof info, status, "rdma", ~0u, code, ~0ull, ""};
        longest = std::max(longest, failure_text(ring, info, status != XIO_ERR_STORAGE, " to PE 1023").size());
      }
  for (int status = XIO_ERR_INTERNAL; status < 0; ++status)
    longest = std::max(longest, refusal_text(static_cast<xio_status_t>(status), 2).size());
  EXPECT_LT(longest, sizeof info.sentence);
}

TEST(failure_text, every_refusal_has_a_sentence_of_its_own) {
  EXPECT_PRED2(says, refusal_text(XIO_ERR_PE, 2), "PEs are 0 to 1 (xio_n_pes() - 1)");
  EXPECT_PRED2(says, refusal_text(XIO_ERR_NOT_SYMMETRIC, 2), "xio_malloc");
  EXPECT_PRED2(says, refusal_text(XIO_ERR_NOT_REGISTERED, 2), "xio_mem_register");
  EXPECT_PRED2(says, refusal_text(XIO_ERR_IO, 2), "XIO_ERR_IO");
}

struct refused_call {
  dev::call_kind kind;
  std::uint32_t pe;
  std::uint64_t address, local, bytes;
  const char* words;
};

// The argument is named from what the record has of the call.
TEST(failure_text, a_refused_argument_is_named) {
  using enum dev::call_kind;
  const storage_place on{"file:" + std::string(200, 'x') + "data.bin", 100352, 512, false};
  const storage_place kept{"file:kept", 100352, 512, true};
  const refused_call calls[] = {
      {storage_read, 1, 100, 64, 512, "512 bytes at offset 100 of ..."},
      {storage_read, 1, 100, 64, 512, "data.bin, buffer 0x40: the offset is no multiple of its block of 512 bytes"},
      {storage_read, 1, 0, 64, 100001, "the size is no multiple of its block of 512 bytes"},
      {storage_write, 1, 1048576, 64, 512, "it ends behind the storage's 100352 bytes"},
      {storage_compare, 1, 512, 0, 512, "the buffer is null"},
      {storage_read, 1, 512, 66, 512, "the buffer's address is no multiple of 4"},
      {put, 1, 0x1000, 0, 8, "the local buffer is null"},
      {get, 1, 0, 64, 8, "the symmetric address is null"},
      {put_strided, 1, 0x1000, 64, 8, "a stride is less than 1"},
      {put_value, 1, 0x1002, 0, 4, "the value's address is no multiple of its 4 bytes"},
      {signal_op, 1, 0x1004, 0, 8, "the signal's address is no multiple of its 8 bytes"},
      {signal_op, 1, 0x1008, 0, 8, "neither XIO_SIGNAL_SET nor XIO_SIGNAL_ADD"},
      {put_signal, 1, 0x1001, 0, 100, "the local buffer is null"},
      {put_counter, dev::k_no_pe, 0, 0, 8, "the counter's address is null"},
      {put_packet, 1, 0x1000, 0, 65, "4 to 64 bytes"},
      {wait_packet, dev::k_no_pe, 0x1004, 0, 8, "the packet's address is null or no multiple of 8"},
      {wait_until, dev::k_no_pe, 0, 0, 8, "the word's address is null"},
      {wait_until, dev::k_no_pe, 0x1000, 0, 8, "none of XIO_CMP_EQ to XIO_CMP_LE"},
      {atomic, 1, 0x1004, 0, 8, "the word's address is no multiple of its 8 bytes"},
  };
  const auto said = [](const refused_call& c, xio_status_t status, const storage_place* storage) {
    dev::call_record r{};
    r.status = static_cast<std::uint32_t>(status);
    r.kind = static_cast<std::uint32_t>(c.kind);
    r.pe = c.pe;
    r.address = c.address;
    r.local = c.local;
    r.bytes = c.bytes;
    return call_text(r, {0x1000, 0x1000, 2, storage});
  };
  for (const refused_call& c : calls) {
    EXPECT_PRED2(says, said(c, XIO_ERR_ARG, &on), c.words);
    EXPECT_LT(said(c, XIO_ERR_ARG, &on).size(), sizeof xio_error_info_t{}.sentence);
  }
  EXPECT_PRED2(says, said({storage_write, 1, 512, 64, 512, ""}, XIO_ERR_ARG, &kept), "XIO_STORAGE_READ_ONLY");
  EXPECT_PRED2(says, said({storage_read, 0, 512, 64, 512, ""}, XIO_ERR_STATE, nullptr), "the storage is null");
  EXPECT_PRED2(says, said({storage_read, 7, 512, 64, 512, ""}, XIO_ERR_STATE, nullptr), "not open, buffer 0x40: the");
}

// Guard bytes on either side: a sentence that is too long is cut, and ends.
TEST(failure_text, a_sentence_is_cut_where_its_room_ends) {
  struct {
    xio_error_info_t info = XIO_ERROR_INFO_INIT;
    char guard[8];
  } x;
  std::memset(&x, 0x5a, sizeof x);
  put_sentence(x.info, std::string(1000, 'a'));
  EXPECT_PAIRS((std::strlen(x.info.sentence), sizeof x.info.sentence - 1), (std::memcmp(x.guard, "ZZZZZZZZ", 8), 0));
  put_sentence(x.info, "b");
  EXPECT_STREQ(x.info.sentence, "b");
  EXPECT_EQ(x.info.sentence[200], '\0');
}

}  // namespace
}  // namespace xio
