// SPDX-License-Identifier: MIT
// A decoded instruction: a function to call and where its operands are. It is made once per address.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "amdgpu/memory/port.hpp"
#include "amdgpu/report/counters.hpp"

namespace amdgpu {

struct wave;
struct operation;

using handler = void (*)(wave&, const operation&);
// Computes a VALU instruction, for all 64 lanes: D and the sources are rows of 64 dwords (a 64-bit value is a row of
// low halves followed by one of high halves); the mask that comes in and the one that is returned have a bit per lane.
using lane_function = std::uint64_t (*)(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b,
                                        const std::uint32_t* c, std::uint64_t mask);

enum class place : std::uint8_t { none, sgpr, vgpr, constant, special };

// Numbers of SGPRs as instructions encode them (MI200 ISA 3.1, "SSRC operands").
namespace reg {
constexpr unsigned flat_scratch = 102, xnack = 104, vcc = 106, ttmp0 = 108, m0 = 124, exec = 126;
// gfx1100's null: what is written there is never read.
constexpr unsigned nowhere = 128;
// Numbers of sources that are no registers.
constexpr unsigned shared_base = 235, shared_limit = 236, private_base = 237, private_limit = 238, pops = 239,
                   vccz = 251, execz = 252, scc = 253;
// AGPRs follow the 256 VGPRs.
constexpr unsigned agpr0 = 256;
}  // namespace reg

// Which part of a register an SDWA operand is (MI200 ISA 12.9.1).
enum class part : std::uint8_t { dword, byte0, byte1, byte2, byte3, word0, word1 };

struct operand {
  place where = place::none;
  char type = 'i';  // see rows of tables: i f w h q l d p P m s
  std::uint8_t dwords = 1;
  std::uint16_t index = 0;  // of an SGPR, VGPR or special value
  bool negate = false, absolute = false, extend = false;
  bool high = false;  // gfx1100's text names the high half
  part which = part::dword;
  std::uint64_t value = 0;  // of a constant
};

// Modifiers of VALU instructions.
struct modifiers {
  bool clamp = false;
  std::uint8_t omod = 0;  // 1: times 2, 2: times 4, 3: half
  std::uint8_t op_sel = 0, op_sel_hi = 0xff, neg_lo = 0, neg_hi = 0;
  bool has_op_sel = false, sdwa = false, dpp = false;
  part dst_sel = part::dword;
  enum class unused : std::uint8_t { pad, sext, preserve } rest = unused::pad;
  std::uint32_t dpp_ctrl = 0;  // with dpp8, three bits for each of eight lanes
  std::uint8_t row_mask = 0xf, bank_mask = 0xf;
  bool bound_ctrl = false;
  bool dpp8 = false, fetch_inactive = false;  // gfx1100's
};

struct operation {
  handler run = nullptr;
  lane_function lanes_do = nullptr;
  operand dst, dst2, src[4];
  std::uint8_t n_src = 0;
  std::uint8_t bytes = 4;    // of the instruction
  std::uint8_t width = 0;    // bytes per lane of a memory access
  std::uint8_t variant = 0;  // meaning belongs to the handler
  count kind = count::other;
  bool plain = true;  // no modifiers: the fast path
  bool ends_turn = false;
  std::int32_t offset = 0, offset2 = 0;
  std::uint32_t immediate = 0;  // SOPK, SOPP, s_waitcnt
  scope_bits scope;
  bool offen = false, idxen = false, lds = false, gds = false;
  modifiers mods;
  std::uint32_t raw[3] = {0, 0, 0};
  std::string_view name;  // mnemonic without its encoding's suffix
  std::string text;
  bool counts_as_store = false;                       // gfx1100's vscnt counts it
  std::shared_ptr<const struct operation_pair> both;  // gfx1100's VOPD: two that run at once
};

// Each reads its sources before the other writes. Where each reads what the other writes, `saved` says that the
// second's reads go to a row that holds what the first overwrote.
struct operation_pair {
  operation first, second;
  bool saved = false;
};

// A row of the tables: a mnemonic without suffix and how it is run. `form` lists the types of operands in the order of
// the text, those written before '=' and those read after it:
//   i 32-bit integer   f float   w 16-bit integer   h half      q 64-bit unsigned   l 64-bit signed   d double
//   p pair of 16-bit values      P pair of 32-bit floats        m lane mask (SGPR pair)   s scalar dword   S scalar
//   qword x text that the handler reads from the encoding
// At the end: '+' the destination is also a source, the last one; '<' VCC is a mask source that the text does not show;
// '?' what stands before '=' is there if the text says glc. A form "*" leaves all to the handler.
struct row {
  const char* name;
  const char* form;
  handler run;
  lane_function lanes_do;
  std::uint8_t variant, width;
  constexpr row(const char* n, const char* f, handler h, lane_function l = nullptr, std::uint8_t v = 0,
                std::uint8_t bytes = 0)
      : name(n), form(f), run(h), lanes_do(l), variant(v), width(bytes) {}
};

// Finds a mnemonic in all tables; null if none has it.
const row* find_row(std::string_view name);

using table = std::span<const row>;
table salu_rows();
table flow_rows();
table smem_rows();
table valu_integer_rows();
table valu_float_rows();
table valu_half_rows();
table valu_compare_rows();
table valu_convert_rows();
table valu_packed_rows();
table valu_lane_rows();
table lds_rows();
table flat_rows();
table buffer_rows();
table gfx1100_rows();

}  // namespace amdgpu
