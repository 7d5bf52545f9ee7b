// SPDX-License-Identifier: MIT
// What the test run wants of the simulated device, from the environment that tests/uverbs/run prepares:
//   XIO_TEST_UVERBS_SESSION   folder of sockets, the same for all processes of a world
//   XIO_TEST_UVERBS_NIC       mlx5 (a ConnectX), bnxt (a Thor2) or ionic (a Pollara)
//   XIO_TEST_UVERBS_FAULTS    words with commas: port_down, no_devx, no_uncached (doorbell pages), no_register,
//                        real_time_clock, shallow (queues of at most 16 entries), old_kernel, no_fixed (before Linux
//                        7.2), static_mode (an older NIC), interface1 (ionic's older entries), no_rdma, old_firmware,
//                        no_pin (of queues), no_way (to a peer), half_deaf
//                        (to doorbells of odd queue pairs), no_export (of mlx5's doorbell pages), opcode:status (both
//                        hexadecimal: that command is refused so)
//   XIO_TEST_UVERBS_FAULTS_AT the only host (1 is the first process) that has them; else all
//   XIO_TEST_UVERBS_VENDOR    the driver is the vendor's, whose own library (tests/uverbs/vendor) makes queues
//   XIO_TEST_UVERBS_LOG       prints refused commands and system calls
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace uverbs {

enum class nic_kind { mlx5, bnxt, ionic };

struct faults {
  bool port_down = false, no_devx = false, no_uncached = false, no_register = false, real_time_clock = false,
       shallow = false;
  bool old_kernel = false, no_fixed = false, static_mode = false, no_pin = false, no_way = false;
  bool interface1 = false, no_rdma = false, old_firmware = false, half_deaf = false, no_export = false;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> refused;  // opcode, status
};

struct settings : faults {
  nic_kind nic = nic_kind::mlx5;
  std::string session;  // empty: no device
  std::uint32_t host = 0;
  bool log = false, vendor = false;

  // These alone, by the words above.
  void set_faults(const std::string& words);
  // Takes a host number that no other process has.
  static settings read();
};

}  // namespace uverbs
