// SPDX-License-Identifier: MIT
// What --controller names, and whether it may be written.
#pragma once
#include <vector>

#include "tools/xio-tester/settings.hpp"
#include "transport/nvme/file_name.hpp"

namespace xio::tester {

struct nvme_target {
  std::string name;         // for xio_storage_open
  bool is_file = false;     // else a drive
  bool is_disk = false;     // of files: a block device
  bool exists = false;      // of files
  std::uint64_t bytes = 0;  // of files
  nvme::file_name said;     // of files: what the name says of size and blocks, which goes before the flags
};

// Takes file:PATH, nvme:BDF/NSID, kmod:BDF/NSID, the path of a controller, a namespace or a link to one, a BDF, or
// the path of a file. Touches nothing. Throws XIO_ERR_ARG.
nvme_target find_target(const nvme_settings& settings);

// Of each controller of a stripe, as in "file:a,file:b".
std::vector<nvme_target> find_targets(const nvme_settings& settings);

// All of them as one storage.
nvme_target striped(const std::vector<nvme_target>& targets);

// Throws XIO_ERR_ARG with the reason if writing would destroy what somebody may want to keep.
void check_writable(const nvme_target& target, const nvme_settings& settings);

}  // namespace xio::tester
