// SPDX-License-Identifier: MIT
// What a memory mode puts where, and what it is refused for. The bits are those of ROCm XIO's --memory-mode.
#include "../gtest.hpp"
#include "base/error.hpp"
#include "memory/mode.hpp"

namespace xio::memory {
namespace {

constexpr part k_parts[] = {part::submission, part::completion, part::doorbell, part::data};
constexpr gpu::place k_host = gpu::place::shared;
constexpr gpu::place k_device = gpu::place::device;

std::string why(xio_status_t status, std::uint64_t bits, part p, const ability& can) {
  try {
    mode(bits).place(p, "a test", can);
  } catch (const error& e) {
    EXPECT_EQ(e.status(), status);
    return e.what();
  }
  ADD_FAILURE() << "mode " << bits << " was taken";
  return "";
}

TEST(memory_mode, every_bit_of_every_mode_is_honoured_where_both_places_can_be) {
  for (int bits = 0; bits < 16; ++bits) {
    const mode m(bits);
    const int weights[] = {1, 2, 4, 8};
    for (int i = 0; i < 4; ++i) {
      const gpu::place wanted = bits / weights[i] % 2 == 1 ? k_device : k_host;
      EXPECT_EQ(m.place(k_parts[i], "a test", {k_host, nullptr}), wanted) << bits << " " << i;
      EXPECT_EQ(m.place(k_parts[i], "a test", {k_device, nullptr}), wanted) << bits << " " << i;
    }
  }
}

TEST(memory_mode, auto_is_the_transports_own_choice) {
  for (const part p : k_parts) {
    EXPECT_EQ(mode(std::nullopt).place(p, "a test", {k_host, "no"}), k_host);
    EXPECT_EQ(mode(std::nullopt).place(p, "a test", {k_device, "no"}), k_device);
    EXPECT_EQ(mode{}.place(p, "a test", {k_device, nullptr}), k_device);
  }
}

TEST(memory_mode, what_cannot_be_is_refused_with_the_reason_and_the_bit) {
  const std::string up = why(XIO_ERR_UNSUPPORTED, 3, part::completion, {k_host, "it is a register"});
  EXPECT_NE(up.find("XIO_MEMORY_MODE=3"), std::string::npos) << up;
  EXPECT_NE(up.find("completions into GPU memory"), std::string::npos) << up;
  EXPECT_NE(up.find("it is a register"), std::string::npos) << up;
  EXPECT_NE(up.find("leave out 2"), std::string::npos) << up;
  const std::string down = why(XIO_ERR_UNSUPPORTED, 0, part::data, {k_device, "there is no other"});
  EXPECT_NE(down.find("data into host memory"), std::string::npos) << down;
  EXPECT_NE(down.find("add 8"), std::string::npos) << down;
  // A placement that is the default anyway needs no permission.
  EXPECT_EQ(mode(3).place(part::doorbell, "a test", {k_host, "it is a register"}), k_host);
  EXPECT_EQ(mode(8).place(part::data, "a test", {k_device, "there is no other"}), k_device);
}

}  // namespace
}  // namespace xio::memory
