// SPDX-License-Identifier: MIT
// Files by hipFile or cuFile: whole pages go between them and GPU memory without a copy by the CPU.
#pragma once
#include "base/payload.hpp"
#include "model/nvme/file.hpp"
#include "model/nvme/file_engine.hpp"

namespace xio::model::nvme {

// XIO_STORAGE_FILES_BY and XIO_STORAGE_FILES_LIBRARY.
struct library_choice {
  option::storage_files_by by = option::storage_files_by::automatic;
  std::string file;
};

// The engine of a file, and in `said` what it is, or why it is without a library. Asked for by name, a library that is
// not to be had is an error.
// staging: as make_staged_engine has it.
std::unique_ptr<file_engine> choose_file_engine(const library_choice& asked, file& backing,
                                                const payload_agent& payload, std::span<std::byte> staging,
                                                std::string& said);
std::string describe_file_library(const library_choice& asked, const payload_agent& payload);

}  // namespace xio::model::nvme
