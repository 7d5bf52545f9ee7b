// SPDX-License-Identifier: MIT
// The software devices of this build, behind the interfaces by which the transports drive them. software.cpp is the one
// file of src/transport that knows the model.
#pragma once
#include "base/error.hpp"
#include "base/option_words.hpp"
#include "progress/machine.hpp"
#include "proxy/family.hpp"
#include "proxy/fault_plan.hpp"
#include "proxy/frame_faults.hpp"
#include "proxy/keys.hpp"
#include "transport/nvme/software_drive.hpp"
#include "transport/sdma/software_engine.hpp"
#include "xio/wire/sdma.hpp"

namespace xio::software {

// Where faults of a NIC act: on ops, or on the frames of its fabric too.
enum class fault_level { ops, frames };

// Null where no faults are asked for. `frames` is part of `ops`, and null at the level of ops.
struct nic_faults {
  std::unique_ptr<proxy::fault_plan> ops;
  proxy::frame_faults* frames = nullptr;
  proxy::memory_place place;  // needs `ops` to live
};

struct copy_engine_plan {
  wire::sdma::generation generation;
  std::uint64_t seed;     // of the order of copies between fences
  std::uint32_t granule;  // 1, or 4 for an engine that refuses linear copies that are not of whole dwords
};

// One function for each kind of device. `faults` is the text of XIO_MODEL_FAULTS, and what is wrong with it is thrown.
struct devices {
  // Null: no NIC of that family.
  const proxy::family* (*find_nic)(const std::string& family);
  nic_faults (*plan_nic_faults)(const std::string& faults, int pe, fault_level level);

  std::unique_ptr<sdma::software_engine> (*make_copy_engine)(const copy_engine_plan& plan, const payload_agent& payload,
                                                             const std::string& faults);
  // Of the code that an engine left in software_queue::report; never null.
  const char* (*copy_engine_failure)(std::uint32_t code);

  // Opens and checks the file at `path`, and leaves it as it is.
  std::unique_ptr<nvme::software_drive> (*open_drive)(const std::string& path, const xio_storage_attr_t& attr,
                                                      const nvme::drive_shape& shape, const std::string& faults);
  // A PCI MMIO bridge over zeroed memory; registers: BAR 0 of the one device behind it.
  std::unique_ptr<progress::device> (*make_bridge)(std::byte* ring, std::size_t bytes, std::uint32_t bdf,
                                                   void* registers);
  // The library that moves files' data to GPU memory, or why there is none: for people.
  std::string (*describe_file_library)(option::storage_files_by by, const std::string& file,
                                       const payload_agent& payload);
};

// Null in a library without software devices (--disable-model).
const devices* built_in();

// Refuses XIO_BACKEND=model where there are none.
inline void check_backend(option::backend asked) {
  if (asked == option::backend::model && built_in() == nullptr)
    fail(XIO_ERR_UNSUPPORTED,
         "XIO_BACKEND=model asks for software devices, which this build lacks; set it to auto or hw, or configure XIO "
         "without --disable-model");
}

}  // namespace xio::software
