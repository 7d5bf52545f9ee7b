// SPDX-License-Identifier: MIT
// The software devices of this build, behind the interfaces by which the transports drive them. software.cpp is the one
// file of src/transport that knows the model.
#pragma once
#include "base/error.hpp"
#include "base/option_words.hpp"
#include "base/payload.hpp"
#include "progress/machine.hpp"
#include "proxy/family.hpp"
#include "proxy/fault_plan.hpp"
#include "proxy/frame_faults.hpp"
#include "proxy/keys.hpp"
#include "xio/wire/sdma.hpp"

namespace xio::sdma {

// Describes a queue to an engine. The pointers name plain host memory that outlives the queue.
struct software_queue {
  const std::uint32_t* ring;
  std::uint64_t ring_bytes;  // a power of two
  const std::uint64_t* wptr;
  const std::uint64_t* doorbell;
  std::uint32_t* report;  // gets the fault's code and its place, see vendor_text()
  std::uint64_t start;    // value of wptr and doorbell at creation
};

// A software copy engine as the model engines of sdma/open_engine.cpp drive it.
class software_engine {
 public:
  virtual ~software_engine() = default;
  // A progress::machine polls this device.
  virtual progress::device& device() = 0;
  // Memory that packets may name, which may be a GPU's, or plain host memory. False if the range is empty or wraps.
  virtual bool map_payload(void* base, std::size_t bytes) = 0;
  virtual bool map_host(void* base, std::size_t bytes) = 0;
  // On return no packet touches the range (unless it is mapped a second time).
  virtual void unmap(void* base) = 0;
  // Returns the queue's number. On return of remove_queue none of its memory is touched any more.
  virtual std::uint32_t add_queue(const software_queue& memory) = 0;
  virtual void remove_queue(std::uint32_t number) = 0;
};

}  // namespace xio::sdma

namespace xio::nvme {

struct drive_shape {
  std::uint32_t mdts_bytes;  // a power of two of pages, 2 at least
  std::uint32_t max_queues;  // I/O queue pairs
  // What moves the file's data, and the file of a library for it; "": its own.
  option::storage_files_by files_by;
  std::string files_library;
};

// A software drive over a file as file_controller drives it.
class software_drive {
 public:
  enum class memory {
    queues,         // and lists: plain host memory
    payload,        // what payload_agent reaches
    in_host_memory  // payload that the operating system reads and writes by itself
  };

  virtual ~software_drive() = default;
  // Of the registers that start() gets.
  virtual std::size_t register_bytes() const = 0;
  // registers: zeroed memory that outlives the drive. Before everything below.
  // staging: memory through which data go that the operating system does not reach; outlives the drive, {}: none.
  virtual void start(void* registers, const payload_agent& payload, std::span<std::byte> staging = {}) = 0;
  // Of `staging`, where there is any.
  virtual std::size_t staging_bytes() const = 0;
  // A progress::machine polls this device.
  virtual progress::device& device() = 0;
  virtual const char* io_engine() const = 0;
  // As controller::grow and commit, of the file.
  virtual void grow() = 0;
  virtual void commit() = 0;
  // How long the file is; its commands of bytes (wire::nvme::of_bytes) reach all of it.
  virtual std::uint64_t bytes() const = 0;
  // As controller::extend.
  virtual std::uint64_t extend(std::uint64_t bytes) = 0;
  // Memory that commands may name; returns its bus address. Thread safe, like the two below.
  virtual std::uint64_t map(void* base, std::size_t bytes, memory kind) = 0;
  virtual void unmap(void* base) = 0;
  // Unmaps and waits for the file's jobs that have the memory. False: a job does not end, and may still read or write
  // there.
  virtual bool take_away(void* base) = 0;
};

}  // namespace xio::nvme

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
