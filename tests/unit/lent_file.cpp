// SPDX-License-Identifier: MIT
// A file lent to other processes, as dma-bufs of heaps are: it is the same file there, others do not get it, and
// borrowers that say nothing hold nobody up for long.
#include "gpu/lent_file.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include "refusal.hpp"

namespace xio::gpu {
namespace {

using test::in_child;
using test::refusal;

constexpr int k_deadline_ms = 5000;

unique_fd file_that_says(const std::string& text) {
  unique_fd fd(memfd_create("xio-test", MFD_CLOEXEC));
  EXPECT_EQ(pwrite(fd.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  return fd;
}

std::string text_in(int fd) {
  char text[32] = {};
  return {text, static_cast<std::size_t>(std::max<ssize_t>(0, pread(fd, text, sizeof text, 0)))};
}

TEST(lent_file, is_the_same_file_in_another_process) {
  unique_fd fd = file_that_says("heap");
  const int mine = fd.get();
  const lent_file loan(std::move(fd));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(in_child([&] {
                const unique_fd got = borrow_file(loan.name(), k_deadline_ms);
                return text_in(got.get()) == "heap" && pwrite(got.get(), "seen", 4, 0) == 4 ? 0 : 1;
              }),
              0);
    EXPECT_EQ(text_in(mine), "seen");
    ASSERT_EQ(pwrite(mine, "heap", 4, 0), 4);
  }
}

TEST(lent_file, is_not_there_under_another_name_or_after_its_end) {
  loan_name name{};
  {
    const lent_file loan(file_that_says("x"));
    name = loan.name();
    loan_name other = name;
    other[1] ^= 1;
    test::expect_words(refusal(XIO_ERR_UNSUPPORTED, [&] { borrow_file(other, k_deadline_ms); }), {"one user"});
    EXPECT_NO_THROW(borrow_file(name, k_deadline_ms));
  }
  refusal(XIO_ERR_UNSUPPORTED, [&] { borrow_file(name, k_deadline_ms); });
}

TEST(lent_file, is_not_for_other_users) {
  if (getuid() != 0) GTEST_SKIP() << "only root can become another user";
  const lent_file loan(file_that_says("x"));
  EXPECT_EQ(in_child([&] {
              if (setgid(65534) != 0 || setuid(65534) != 0) return 3;
              try {
                borrow_file(loan.name(), k_deadline_ms);
              } catch (const error&) {
                return 0;
              }
              return 1;
            }),
            0);
}

TEST(lent_file, goes_to_the_next_although_one_says_nothing) {
  const lent_file loan(file_that_says("heap"));
  const std::string text = fmt::format("xio-loan-{:016x}{:016x}", loan.name()[0], loan.name()[1]);
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::memcpy(at.sun_path + 1, text.data(), text.size());
  const unique_fd mute(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(mute.get(), reinterpret_cast<const sockaddr*>(&at),
                    static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size())),
            0);
  unique_fd got;
  ASSERT_NO_THROW(got = borrow_file(loan.name(), 4 * k_deadline_ms));
  EXPECT_EQ(text_in(got.get()), "heap");
}

TEST(lent_file, can_be_left_by_a_forked_child) {
  auto* loan = new lent_file(file_that_says("heap"));
  EXPECT_EQ(in_child([&] {
              delete loan;
              return 0;
            }),
            0);
  EXPECT_NO_THROW(borrow_file(loan->name(), k_deadline_ms));
  delete loan;
}

}  // namespace
}  // namespace xio::gpu
