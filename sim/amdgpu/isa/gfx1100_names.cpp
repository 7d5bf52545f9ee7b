// SPDX-License-Identifier: MIT
// RDNA3 ISA, chapter 16 "Instructions", against MI200 ISA, chapter 12; LLVM's AMDGPUAsmGFX11 has the same list.
#include "amdgpu/isa/gfx1100_names.hpp"

#include <unordered_map>

namespace amdgpu {
namespace {

struct pair {
  std::string_view gfx1100, table;
};

constexpr pair whole[] = {
    {"s_and_not1_b32", "s_andn2_b32"},
    {"s_and_not1_b64", "s_andn2_b64"},
    {"s_or_not1_b32", "s_orn2_b32"},
    {"s_or_not1_b64", "s_orn2_b64"},
    {"s_and_not1_saveexec_b32", "s_andn2_saveexec_b32"},
    {"s_and_not1_saveexec_b64", "s_andn2_saveexec_b64"},
    {"s_or_not1_saveexec_b32", "s_orn2_saveexec_b32"},
    {"s_or_not1_saveexec_b64", "s_orn2_saveexec_b64"},
    {"s_and_not0_saveexec_b32", "s_andn1_saveexec_b32"},
    {"s_and_not0_saveexec_b64", "s_andn1_saveexec_b64"},
    {"s_or_not0_saveexec_b32", "s_orn1_saveexec_b32"},
    {"s_or_not0_saveexec_b64", "s_orn1_saveexec_b64"},
    {"s_and_not1_wrexec_b32", "s_andn2_wrexec_b32"},
    {"s_and_not1_wrexec_b64", "s_andn2_wrexec_b64"},
    {"s_and_not0_wrexec_b32", "s_andn1_wrexec_b32"},
    {"s_and_not0_wrexec_b64", "s_andn1_wrexec_b64"},
    {"s_ctz_i32_b32", "s_ff1_i32_b32"},
    {"s_ctz_i32_b64", "s_ff1_i32_b64"},
    {"s_clz_i32_u32", "s_flbit_i32_b32"},
    {"s_clz_i32_u64", "s_flbit_i32_b64"},
    {"s_cls_i32", "s_flbit_i32"},
    {"s_cls_i32_i64", "s_flbit_i32_i64"},
    {"s_load_b32", "s_load_dword"},
    {"s_load_b64", "s_load_dwordx2"},
    {"s_load_b128", "s_load_dwordx4"},
    {"s_load_b256", "s_load_dwordx8"},
    {"s_load_b512", "s_load_dwordx16"},
    {"s_set_inst_prefetch_distance", "s_inst_prefetch"},
    {"v_add_nc_u32", "v_add_u32"},
    {"v_sub_nc_u32", "v_sub_u32"},
    {"v_subrev_nc_u32", "v_subrev_u32"},
    {"v_add_nc_i32", "v_add_i32"},
    {"v_sub_nc_i32", "v_sub_i32"},
    {"v_add_nc_u16", "v_add_u16"},
    {"v_sub_nc_u16", "v_sub_u16"},
    {"v_add_nc_i16", "v_add_i16"},
    {"v_sub_nc_i16", "v_sub_i16"},
    {"v_add_co_ci_u32", "v_addc_co_u32"},
    {"v_sub_co_ci_u32", "v_subb_co_u32"},
    {"v_subrev_co_ci_u32", "v_subbrev_co_u32"},
    {"v_clz_i32_u32", "v_ffbh_u32"},
    {"v_ctz_i32_b32", "v_ffbl_b32"},
    {"v_cls_i32", "v_ffbh_i32"},
    {"v_cvt_pk_rtz_f16_f32", "v_cvt_pkrtz_f16_f32"},
    {"v_cvt_pk_norm_i16_f32", "v_cvt_pknorm_i16_f32"},
    {"v_cvt_pk_norm_u16_f32", "v_cvt_pknorm_u16_f32"},
    {"v_cvt_nearest_i32_f32", "v_cvt_rpi_i32_f32"},
    {"v_cvt_floor_i32_f32", "v_cvt_flr_i32_f32"},
    {"v_mul_dx9_zero_f32", "v_mul_legacy_f32"},
    {"ds_load_2addr_b32", "ds_read2_b32"},
    {"ds_load_2addr_b64", "ds_read2_b64"},
    {"ds_load_2addr_stride64_b32", "ds_read2st64_b32"},
    {"ds_load_2addr_stride64_b64", "ds_read2st64_b64"},
    {"ds_store_2addr_b32", "ds_write2_b32"},
    {"ds_store_2addr_b64", "ds_write2_b64"},
    {"ds_store_2addr_stride64_b32", "ds_write2st64_b32"},
    {"ds_store_2addr_stride64_b64", "ds_write2st64_b64"},
    {"ds_storexchg_rtn_b32", "ds_wrxchg_rtn_b32"},
    {"ds_storexchg_rtn_b64", "ds_wrxchg_rtn_b64"},
};

// These follow "flat", "global" or "scratch".
constexpr pair by_address[] = {
    {"_load_u8", "_load_ubyte"},
    {"_load_i8", "_load_sbyte"},
    {"_load_u16", "_load_ushort"},
    {"_load_i16", "_load_sshort"},
    {"_load_d16_u8", "_load_ubyte_d16"},
    {"_load_d16_hi_u8", "_load_ubyte_d16_hi"},
    {"_load_d16_i8", "_load_sbyte_d16"},
    {"_load_d16_hi_i8", "_load_sbyte_d16_hi"},
    {"_load_d16_b16", "_load_short_d16"},
    {"_load_d16_hi_b16", "_load_short_d16_hi"},
    {"_load_b32", "_load_dword"},
    {"_load_b64", "_load_dwordx2"},
    {"_load_b96", "_load_dwordx3"},
    {"_load_b128", "_load_dwordx4"},
    {"_store_b8", "_store_byte"},
    {"_store_d16_hi_b8", "_store_byte_d16_hi"},
    {"_store_b16", "_store_short"},
    {"_store_d16_hi_b16", "_store_short_d16_hi"},
    {"_store_b32", "_store_dword"},
    {"_store_b64", "_store_dwordx2"},
    {"_store_b96", "_store_dwordx3"},
    {"_store_b128", "_store_dwordx4"},
    {"_atomic_swap_b32", "_atomic_swap"},
    {"_atomic_swap_b64", "_atomic_swap_x2"},
    {"_atomic_cmpswap_b32", "_atomic_cmpswap"},
    {"_atomic_cmpswap_b64", "_atomic_cmpswap_x2"},
    {"_atomic_add_u32", "_atomic_add"},
    {"_atomic_add_u64", "_atomic_add_x2"},
    {"_atomic_sub_u32", "_atomic_sub"},
    {"_atomic_sub_u64", "_atomic_sub_x2"},
    {"_atomic_min_i32", "_atomic_smin"},
    {"_atomic_min_i64", "_atomic_smin_x2"},
    {"_atomic_min_u32", "_atomic_umin"},
    {"_atomic_min_u64", "_atomic_umin_x2"},
    {"_atomic_max_i32", "_atomic_smax"},
    {"_atomic_max_i64", "_atomic_smax_x2"},
    {"_atomic_max_u32", "_atomic_umax"},
    {"_atomic_max_u64", "_atomic_umax_x2"},
    {"_atomic_and_b32", "_atomic_and"},
    {"_atomic_and_b64", "_atomic_and_x2"},
    {"_atomic_or_b32", "_atomic_or"},
    {"_atomic_or_b64", "_atomic_or_x2"},
    {"_atomic_xor_b32", "_atomic_xor"},
    {"_atomic_xor_b64", "_atomic_xor_x2"},
    {"_atomic_inc_u32", "_atomic_inc"},
    {"_atomic_inc_u64", "_atomic_inc_x2"},
    {"_atomic_dec_u32", "_atomic_dec"},
    {"_atomic_dec_u64", "_atomic_dec_x2"},
};

template <std::size_t n>
std::unordered_map<std::string_view, std::string_view> map_of(const pair (&list)[n]) {
  std::unordered_map<std::string_view, std::string_view> made;
  for (const pair& p : list) made.emplace(p.gfx1100, p.table);
  return made;
}

bool begins(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

}  // namespace

std::string name_in_tables(std::string_view name) {
  static const auto& names = *new auto(map_of(whole));  // never freed: threads may outlive static objects
  static const auto& addressed = *new auto(map_of(by_address));
  if (const auto found = names.find(name); found != names.end()) return std::string(found->second);
  for (std::string_view prefix : {"flat", "global", "scratch"})
    if (begins(name, prefix))
      if (const auto found = addressed.find(name.substr(prefix.size())); found != addressed.end())
        return std::string(prefix).append(found->second);
  if (begins(name, "ds_load_")) return "ds_read_" + std::string(name.substr(8));
  if (begins(name, "ds_store_")) return "ds_write_" + std::string(name.substr(9));
  return std::string(name);
}

}  // namespace amdgpu
