// SPDX-License-Identifier: MIT
// A world of one PE: nobody to talk to.
#include "bootstrap/bootstrap.hpp"

namespace xio::bootstrap {

namespace {

class local_channel final : public channel {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  const char* name() const override { return "local"; }
  bool sealed() const override { return true; }
  std::vector<std::byte> allgather(std::span<const std::byte> mine) override { return {mine.begin(), mine.end()}; }
  cells all_to_all(const cells& mine) override {
    check_cells(mine);
    return mine;
  }
};

}  // namespace

std::unique_ptr<channel> connect_local(const bootstrap_options&) { return std::make_unique<local_channel>(); }

}  // namespace xio::bootstrap
