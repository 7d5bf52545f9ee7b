// SPDX-License-Identifier: MIT
// What memory holds before a test, and what it must hold after it.
#pragma once
#include "tools/xio-perf/work.hpp"

namespace xio::perf {

constexpr std::size_t k_guard = 256;  // bytes behind every destination that nobody may touch
constexpr unsigned char k_poison = 0xA5;

// Byte `at` of the data of PE `owner`.
unsigned char pattern(int owner, std::uint64_t at);

// All of these throw xio::error: of the copy that failed, or of the first byte or word that is wrong.
void fill_pattern(void* device, int owner, std::size_t bytes);
void fill_poison(void* device, std::size_t bytes);
void fill_words(void* device, std::size_t bytes, std::uint32_t element);

std::vector<unsigned char> copy_of(const void* device, std::size_t bytes);
// That `bytes` are the owner's from byte `from` of its data on. what: "put_lat of 8 bytes".
void check_pattern(const std::vector<unsigned char>& found, std::size_t bytes, int owner, std::uint64_t from,
                   const char* what);
// That the rest of `found` is poison.
void check_guard(const std::vector<unsigned char>& found, std::size_t bytes, const char* what);
// That every word has seen k atomics.
// The result of a collective at member `me` of those that hold the pattern of their numbers.
void check_collective(const std::vector<unsigned char>& found, test_id id, xio_reduction op, std::size_t bytes, int me,
                      int members, const char* what);
void check_words(const void* device, std::size_t bytes, std::uint32_t element, atomic_op op, std::uint64_t k,
                 const char* what);

}  // namespace xio::perf
