// SPDX-License-Identifier: MIT
// The header of a safetensors file (huggingface/safetensors, README.md): 8 bytes of length, that much JSON, and behind
// it the tensors' data without a gap.
#pragma once
#include <cstdint>
#include <vector>

struct piece {
  std::uint64_t at, bytes;  // in the file
};

// The tensors in order, and the file's end. Nothing of the header is believed: throws where it does not fit the file,
// or itself.
std::vector<piece> read_header(const std::vector<unsigned char>& file);
