// SPDX-License-Identifier: MIT
// RDNA3 ISA, chapter 16 "Instructions", against MI200 ISA, chapter 12; LLVM's AMDGPUAsmGFX11 has the same list.
#include "amdgpu/isa/gfx1100_names.hpp"

#include <algorithm>
#include <iterator>

namespace amdgpu {
namespace {

struct pair {
  std::string_view gfx1100, table;
};

// The beginning of a name, the longer of two before the shorter one.
constexpr pair beginnings[] = {
    {"s_and_not1_", "s_andn2_"},
    {"s_or_not1_", "s_orn2_"},
    {"s_and_not0_", "s_andn1_"},
    {"s_or_not0_", "s_orn1_"},
    {"s_ctz_i32_b", "s_ff1_i32_b"},
    {"s_clz_i32_u", "s_flbit_i32_b"},
    {"s_cls_i32", "s_flbit_i32"},
    {"s_set_inst_prefetch_distance", "s_inst_prefetch"},
    {"v_add_nc_", "v_add_"},
    {"v_sub_nc_", "v_sub_"},
    {"v_subrev_nc_", "v_subrev_"},
    {"v_add_co_ci_", "v_addc_co_"},
    {"v_sub_co_ci_", "v_subb_co_"},
    {"v_subrev_co_ci_", "v_subbrev_co_"},
    {"v_clz_i32_u", "v_ffbh_u"},
    {"v_ctz_i32_b", "v_ffbl_b"},
    {"v_cls_i32", "v_ffbh_i32"},
    {"v_cvt_pk_rtz_", "v_cvt_pkrtz_"},
    {"v_cvt_pk_norm_", "v_cvt_pknorm_"},
    {"v_cvt_nearest_", "v_cvt_rpi_"},
    {"v_cvt_floor_", "v_cvt_flr_"},
    {"v_mul_dx9_zero_", "v_mul_legacy_"},
    {"ds_load_2addr_stride64_", "ds_read2st64_"},
    {"ds_load_2addr_", "ds_read2_"},
    {"ds_load_", "ds_read_"},
    {"ds_store_2addr_stride64_", "ds_write2st64_"},
    {"ds_store_2addr_", "ds_write2_"},
    {"ds_store_", "ds_write_"},
    {"ds_storexchg_rtn_", "ds_wrxchg_rtn_"},
};

// The end of the name of a load or store of other memory.
constexpr pair accesses[] = {
    {"_load_u8", "_load_ubyte"},          {"_load_i8", "_load_sbyte"},
    {"_load_u16", "_load_ushort"},        {"_load_i16", "_load_sshort"},
    {"_load_d16_u8", "_load_ubyte_d16"},  {"_load_d16_hi_u8", "_load_ubyte_d16_hi"},
    {"_load_d16_i8", "_load_sbyte_d16"},  {"_load_d16_hi_i8", "_load_sbyte_d16_hi"},
    {"_load_d16_b16", "_load_short_d16"}, {"_load_d16_hi_b16", "_load_short_d16_hi"},
    {"_store_b8", "_store_byte"},         {"_store_d16_hi_b8", "_store_byte_d16_hi"},
    {"_store_b16", "_store_short"},       {"_store_d16_hi_b16", "_store_short_d16_hi"},
};
constexpr pair dwords[] = {{"_b32", "_dword"},    {"_b64", "_dwordx2"},  {"_b96", "_dwordx3"},
                           {"_b128", "_dwordx4"}, {"_b256", "_dwordx8"}, {"_b512", "_dwordx16"}};
constexpr std::string_view integers[] = {"_b32", "_b64", "_i32", "_i64", "_u32", "_u64"};
constexpr std::string_view atomics[] = {"swap", "cmpswap", "add", "sub", "min", "max",
                                        "and",  "or",      "xor", "inc", "dec"};

// `access` as "_load_b64", or as "_atomic_min_i64", which is "_atomic_smin_x2".
std::string access_in_tables(std::string_view access) {
  for (const pair& p : accesses)
    if (access == p.gfx1100) return std::string(p.table);
  const std::size_t at = access.rfind('_');
  const std::string_view verb = access.substr(0, at), type = access.substr(at);
  for (const pair& p : dwords)
    if ((verb == "_load" || verb == "_store") && type == p.gfx1100) return std::string(verb).append(p.table);
  const std::string_view op = verb.substr(std::min(verb.size(), std::string_view("_atomic_").size()));
  const auto is_one_of = [](const auto& all, std::string_view what) {
    return std::ranges::find(all, what) != std::end(all);
  };
  if (!verb.starts_with("_atomic_") || !is_one_of(integers, type) || !is_one_of(atomics, op))
    return std::string(access);
  const std::string sign = op != "min" && op != "max" ? "" : type[1] == 'i' ? "s" : "u";
  return "_atomic_" + sign + std::string(op) + (type.ends_with("64") ? "_x2" : "");
}

}  // namespace

std::string name_in_tables(std::string_view name) {
  for (const pair& p : beginnings)
    if (name.starts_with(p.gfx1100)) return std::string(p.table).append(name.substr(p.gfx1100.size()));
  for (const std::string_view kind : {"flat", "global", "scratch", "s"})
    if (name.starts_with(kind) && name.substr(kind.size()).starts_with('_'))
      return std::string(kind) + access_in_tables(name.substr(kind.size()));
  return std::string(name);
}

}  // namespace amdgpu
