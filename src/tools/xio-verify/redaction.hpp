// SPDX-License-Identifier: MIT
// Takes out of a report what names a machine, its users or its devices to others: names of hosts and users, folders of
// theirs, IP, MAC and InfiniBand addresses, GUIDs, serial numbers.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace xio::verify {

// A name and what stands for it: {"node7", "[host]"}.
struct private_name {
  std::string name, stand_in;
};

// Of this machine and this user, by the system and by the environment.
std::vector<private_name> names_here();

class redactor {
 public:
  explicit redactor(std::vector<private_name> names);

  std::string text(const std::string& from) const;
  // All texts in it, keys too.
  nlohmann::ordered_json all(const nlohmann::ordered_json& from) const;

 private:
  std::vector<private_name> names_;  // longest first
};

}  // namespace xio::verify
