// SPDX-License-Identifier: MIT
#include "uverbs/device/settings.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

namespace uverbs {
namespace {

constexpr std::uint32_t k_most_hosts = 250;

std::uint32_t take_host(const std::string& session) {
  for (std::uint32_t n = 1; n <= k_most_hosts; ++n) {
    const int fd = openat(AT_FDCWD, (session + "/host" + std::to_string(n)).c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (fd < 0) continue;
    close(fd);
    return n;
  }
  return 0;
}

void add_fault(faults& s, const std::string& word) {
  if (word == "port_down") s.port_down = true;
  if (word == "no_devx") s.no_devx = true;
  if (word == "no_uncached") s.no_uncached = true;
  if (word == "no_register") s.no_register = true;
  if (word == "real_time_clock") s.real_time_clock = true;
  if (word == "shallow") s.shallow = true;
  if (word == "old_kernel") s.old_kernel = true;
  if (word == "no_fixed") s.no_fixed = true;
  if (word == "static_mode") s.static_mode = true;
  if (word == "no_pin") s.no_pin = true;
  if (word == "no_way") s.no_way = true;
  if (word == "interface1") s.interface1 = true;
  if (word == "no_rdma") s.no_rdma = true;
  if (word == "old_firmware") s.old_firmware = true;
  if (word == "half_deaf") s.half_deaf = true;
  if (word == "no_export") s.no_export = true;
  if (const auto colon = word.find(':'); colon != std::string::npos)
    s.refused.emplace_back(std::stoul(word, nullptr, 16), std::stoul(word.substr(colon + 1), nullptr, 16));
}

}  // namespace

void settings::set_faults(const std::string& words) {
  static_cast<faults&>(*this) = {};
  std::istringstream list(words);
  for (std::string word; std::getline(list, word, ',');) add_fault(*this, word);
}

settings settings::read() {
  settings s;
  const char* session = std::getenv("XIO_TEST_UVERBS_SESSION");
  if (session == nullptr) return s;
  s.session = session;
  s.host = take_host(s.session);
  const char* nic = std::getenv("XIO_TEST_UVERBS_NIC");
  if (nic != nullptr && std::string(nic) == "bnxt") s.nic = nic_kind::bnxt;
  if (nic != nullptr && std::string(nic) == "ionic") s.nic = nic_kind::ionic;
  s.log = std::getenv("XIO_TEST_UVERBS_LOG") != nullptr;
  s.vendor = std::getenv("XIO_TEST_UVERBS_VENDOR") != nullptr;
  const char* faults = std::getenv("XIO_TEST_UVERBS_FAULTS");
  const char* at = std::getenv("XIO_TEST_UVERBS_FAULTS_AT");
  if (faults == nullptr || (at != nullptr && std::strtoul(at, nullptr, 10) != s.host)) return s;
  s.set_faults(faults);
  return s;
}

}  // namespace uverbs
