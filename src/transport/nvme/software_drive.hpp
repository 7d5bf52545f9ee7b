// SPDX-License-Identifier: MIT
// A software drive over a file as file_controller drives it. transport/software.cpp makes them.
#pragma once
#include <span>

#include "base/payload.hpp"
#include "progress/machine.hpp"

namespace xio::nvme {

struct drive_shape {
  std::uint32_t mdts_bytes;  // a power of two of pages, 2 at least
  std::uint32_t max_queues;  // I/O queue pairs
  // What moves the file's data, and the file of a library for it; "": its own.
  option::storage_files_by files_by;
  std::string files_library;
};

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
