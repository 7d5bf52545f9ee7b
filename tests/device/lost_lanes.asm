; SPDX-License-Identifier: MIT
; Machine code as compilers make it where lanes come together (docs/decisions/0182-lost-lanes.md): of functions whose
; names begin with lost_ a value is lost, of others none. Both the text and what is assembled of it are read.
	.text
	.amdgcn_target "amdgcn-amd-amdhsa--gfx90a"

; From mpi/storage by clang 15: the mask of a join was moved away, and a copy stands between its two halves.
lost_copy:
; %bb.0:
	s_and_saveexec_b64 s[4:5], vcc
	v_writelane_b32 v62, s4, 4
	v_writelane_b32 v62, s5, 5
	s_cbranch_execz .LBB0_2
; %bb.1:
	v_mov_b32_e32 v1, 7
.LBB0_2:
	v_readlane_b32 s4, v62, 4
	v_accvgpr_write_b32 a31, v52
	v_readlane_b32 s5, v62, 5
	s_or_b64 exec, exec, s[4:5]
	v_accvgpr_read_b32 v2, a31
	s_endpgm

; The same, where the arm is so short that no branch leads past it.
lost_short:
; %bb.0:
	s_and_saveexec_b64 s[4:5], vcc
	v_writelane_b32 v62, s4, 4
	v_writelane_b32 v62, s5, 5
; %bb.1:
	v_mov_b32_e32 v1, 7
; %bb.2:
	v_readlane_b32 s4, v62, 4
	v_mov_b32_e32 v3, v52
	v_readlane_b32 s5, v62, 5
	s_or_b64 exec, exec, s[4:5]
	v_add_u32_e32 v2, v3, v1
	s_endpgm

lost_reload:
; %bb.0:
	s_and_saveexec_b64 s[4:5], vcc
	s_cbranch_execz .LBB2_2
; %bb.1:
	v_mov_b32_e32 v1, 7
.LBB2_2:
	buffer_load_dword v5, off, s[0:3], s32 offset:8 ; 4-byte Folded Reload
	s_or_b64 exec, exec, s[4:5]
	s_waitcnt vmcnt(0)
	v_add_u32_e32 v1, v5, v1
	s_endpgm

lost_spill:
; %bb.0:
	s_and_saveexec_b64 s[4:5], vcc
	s_cbranch_execz .LBB3_2
; %bb.1:
	v_mov_b32_e32 v1, 7
.LBB3_2:
	buffer_store_dword v5, off, s[0:3], s32 offset:8 ; 4-byte Folded Spill
	s_or_b64 exec, exec, s[4:5]
	s_endpgm

; No lane is left where a loop ends.
lost_loop:
; %bb.0:
	s_mov_b64 s[4:5], 0
.LBB4_1:
	v_add_u32_e32 v1, 1, v1
	v_cmp_eq_u32_e32 vcc, 9, v1
	s_or_b64 s[4:5], vcc, s[4:5]
	s_andn2_b64 exec, exec, s[4:5]
	s_cbranch_execnz .LBB4_1
; %bb.2:
	v_mov_b32_e32 v3, v4
	s_or_b64 exec, exec, s[4:5]
	s_cbranch_scc1 .LBB4_4
; %bb.3:
	v_mov_b32_e32 v4, v3
.LBB4_4:
	s_endpgm

; The lanes of the other arm read it.
lost_turn:
; %bb.0:
	s_and_saveexec_b64 s[4:5], vcc
	s_xor_b64 s[4:5], exec, s[4:5]
	s_cbranch_execz .LBB5_2
; %bb.1:
	v_mov_b32_e32 v1, 7
.LBB5_2:
	v_accvgpr_write_b32 a31, v52
	s_andn2_saveexec_b64 s[4:5], s[4:5]
	s_cbranch_execz .LBB5_4
; %bb.3:
	v_accvgpr_read_b32 v1, a31
.LBB5_4:
	s_or_b64 exec, exec, s[4:5]
	s_endpgm

right_behind:
; %bb.0:
	s_and_saveexec_b64 s[4:5], vcc
	v_writelane_b32 v62, s4, 4
	v_writelane_b32 v62, s5, 5
	s_cbranch_execz .LBB6_2
; %bb.1:
	v_mov_b32_e32 v1, 7
.LBB6_2:
	v_readlane_b32 s4, v62, 4
	v_readlane_b32 s5, v62, 5
	s_or_b64 exec, exec, s[4:5]
	v_accvgpr_write_b32 a31, v52
	v_accvgpr_read_b32 v2, a31
	s_endpgm

; All lanes write it again before one reads it.
right_overwritten:
; %bb.0:
	s_and_saveexec_b64 s[4:5], vcc
	s_cbranch_execz .LBB7_2
; %bb.1:
	v_mov_b32_e32 v1, 7
.LBB7_2:
	v_mov_b32_e32 v3, v52
	s_or_b64 exec, exec, s[4:5]
	v_mov_b32_e32 v3, v53
	v_add_u32_e32 v1, v3, v1
	s_endpgm

; An arm writes for its own lanes.
right_arm:
; %bb.0:
	s_and_saveexec_b64 s[4:5], vcc
; %bb.1:
	v_mov_b32_e32 v3, v52
; %bb.2:
	s_or_b64 exec, exec, s[4:5]
	v_add_u32_e32 v1, v3, v1
	s_endpgm

; Scalar registers are a wave's, and single lanes are written whether they are in or not.
right_scalar:
; %bb.0:
	s_and_saveexec_b64 s[4:5], vcc
	s_cbranch_execz .LBB9_2
; %bb.1:
	v_mov_b32_e32 v1, 7
.LBB9_2:
	v_readlane_b32 s8, v62, 6
	v_writelane_b32 v61, s8, 7
	v_readlane_b32 s9, v62, 7
	s_or_b64 exec, exec, s[4:5]
	v_add_u32_e32 v1, s9, v61
	s_endpgm

; All lanes of the wave are let in for a moment.
right_whole:
; %bb.0:
	s_and_saveexec_b64 s[4:5], vcc
	s_cbranch_execz .LBB10_2
; %bb.1:
	v_mov_b32_e32 v1, 7
.LBB10_2:
	s_or_saveexec_b64 s[6:7], -1
	buffer_load_dword v62, off, s[0:3], s32 offset:8 ; 4-byte Folded Reload
	s_mov_b64 exec, s[6:7]
	s_waitcnt vmcnt(0)
	v_readlane_b32 s4, v62, 4
	v_readlane_b32 s5, v62, 5
	s_or_b64 exec, exec, s[4:5]
	v_add_u32_e32 v1, v62, v1
	s_endpgm

; Each arm has its own value, which both know behind them.
right_turn:
; %bb.0:
	s_and_saveexec_b64 s[4:5], vcc
	s_xor_b64 s[4:5], exec, s[4:5]
	s_cbranch_execz .LBB11_2
; %bb.1:
	v_mov_b32_e32 v1, 7
.LBB11_2:
	v_mov_b32_e32 v2, 1
	s_andn2_saveexec_b64 s[4:5], s[4:5]
	s_cbranch_execz .LBB11_4
; %bb.3:
	v_mov_b32_e32 v2, 2
.LBB11_4:
	s_or_b64 exec, exec, s[4:5]
	v_add_u32_e32 v1, v2, v1
	s_endpgm
