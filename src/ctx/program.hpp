// SPDX-License-Identifier: MIT
// What the kernels of this program were compiled with (xio/internal.h), and refusing worlds that need more. A kernel
// cannot refuse what it lacks: it would take a ring of one family for one of another.
#pragma once
#include "ctx/route.hpp"

namespace xio::program {

// Of one file more. Engines that any file left out are left out of the program, since nobody knows a kernel's file.
void add_file(std::uint32_t engines, std::uint32_t families) noexcept;

// The layout of a ctx as one file more has it. Throws XIO_ERR_STATE, `call` first, if any has another than this
// library.
void add_layout(std::uint32_t layout) noexcept;
void check_layout(const char* call);

// A bit of XIO_HAS_*.
bool has(std::uint32_t engine) noexcept;
// Whether every file had everything.
bool has_all() noexcept;

// Where copy engines were left out and only might be used, they are not.
void fit(ctx_settings& settings) noexcept;

// Throw XIO_ERR_STATE, `call` first. flushes: whether kernels must flush the HDP.
void check_routes(const char* call, const route_plan& plan, bool flushes);
void check_ring(const char* call, dev::ring_kind kind);
void check_storage(const char* call);

}  // namespace xio::program
