// SPDX-License-Identifier: MIT
// A connection to one of several addresses, of which some swallow packets and some refuse.
#include "base/connect_race.hpp"
#include "../gtest.hpp"

#include <netinet/in.h>

namespace {

using namespace std::chrono_literals;
using xio::connect_race;
using xio::socket_address;
using xio::unique_fd;
using state = connect_race::state;

const in_addr k_loopback{htonl(INADDR_LOOPBACK)};

// A place on the loopback interface: one that takes connections, one that refuses them, and one whose queue is full, so
// that the kernel drops what comes, as a network does that leads nowhere.
class a_place {
 public:
  enum class kind { good, refuses, silent };
  explicit a_place(kind k) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const auto any_port = socket_address::of(AF_INET, &k_loopback, 0);
    EXPECT_EQ(bind(fd_.get(), any_port.get(), any_port.length), 0);
    at = xio::bound_address(fd_.get());
    if (k == kind::refuses) return;
    EXPECT_EQ(listen(fd_.get(), k == kind::good ? 16 : 0), 0);
    if (k == kind::silent) fill();
  }
  socket_address at;

 private:
  void fill() {
    for (int i = 0; i < 8; ++i) {
      filling_.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      (void)connect(filling_.back().get(), at.get(), at.length);
      pollfd p{filling_.back().get(), POLLOUT, 0};
      if (poll(&p, 1, 20) == 0) return;
    }
    ADD_FAILURE() << "the queue of " << at.text() << " is never full";
  }
  unique_fd fd_;
  std::vector<unique_fd> filling_;
};

struct ended {
  state how;
  double seconds;
};

ended run(connect_race& race, std::chrono::milliseconds most = 5s) {
  const auto begin = std::chrono::steady_clock::now();
  state how = race.step();
  while (how == state::running && std::chrono::steady_clock::now() - begin < most) {
    std::vector<pollfd> polled;
    race.add_to(polled);
    poll(polled.data(), polled.size(), race.poll_ms(100));
    how = race.step();
  }
  return {how, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
}

struct row {
  const char* places;  // s: silent, r: refuses, g: good
  double at_least, at_most;
};
void PrintTo(const row& r, std::ostream* out) { *out << r.places; }

struct race_of : testing::TestWithParam<row> {
  std::vector<std::unique_ptr<a_place>> make(const std::string& letters) {
    std::vector<std::unique_ptr<a_place>> all;
    for (const char c : letters)
      all.push_back(std::make_unique<a_place>(c == 's'   ? a_place::kind::silent
                                              : c == 'r' ? a_place::kind::refuses
                                                         : a_place::kind::good));
    return all;
  }
  static std::vector<socket_address> where(const std::vector<std::unique_ptr<a_place>>& all) {
    std::vector<socket_address> out;
    for (const auto& p : all) out.push_back(p->at);
    return out;
  }
};

TEST_P(race_of, addresses_finds_the_good_one_in_time) {
  const auto all = make(GetParam().places);
  connect_race race(where(all));
  const auto e = run(race);
  ASSERT_EQ(e.how, state::connected) << race.errors();
  EXPECT_EQ(race.which(), std::string(GetParam().places).find('g'));
  EXPECT_GE(e.seconds, GetParam().at_least);
  EXPECT_LT(e.seconds, GetParam().at_most);
  EXPECT_TRUE(race.take());
}
// A machine that is busy is late; TCP itself gives up on a silent address after minutes.
INSTANTIATE_TEST_SUITE_P(connect_race, race_of,
                         testing::Values(row{"g", 0, 4}, row{"rrg", 0, 4}, row{"gsss", 0, 4}, row{"sg", 0.24, 4},
                                         row{"ssg", 0.49, 4}, row{"srg", 0.24, 4}, row{"ssssssssg", 0.49, 4},
                                         row{"ssssssssssssg", 0.49, 4}));

class connect_race_test : public race_of {};

TEST_F(connect_race_test, that_ends_says_why) {
  const auto all = make("rr");
  connect_race race(where(all));
  EXPECT_EQ(run(race).how, state::over);
  EXPECT_TRUE(race.refused());
  EXPECT_FALSE(race.may_pass());
  EXPECT_EQ(race.errors(), all[0]->at.text() + ": Connection refused, " + all[1]->at.text() + ": Connection refused");
  const auto one = make("s");
  connect_race silent(where(one));
  const auto e = run(silent);
  EXPECT_EQ(e.how, state::over);
  EXPECT_GE(e.seconds, 1.99);
  EXPECT_FALSE(silent.refused());
  EXPECT_TRUE(silent.may_pass());
  EXPECT_EQ(silent.errors(), "no reply");
}

TEST_F(connect_race_test, of_no_address_is_over) {
  connect_race race({});
  EXPECT_EQ(race.step(), state::over);
  EXPECT_FALSE(race.refused());
}

// A connection that turns out to be another's: the race goes on at once, also with the addresses that had been begun.
TEST_F(connect_race_test, goes_on_after_a_connection_that_is_of_no_use) {
  const auto all = make("sgrg");
  connect_race race(where(all));
  ASSERT_EQ(run(race).how, state::connected);
  EXPECT_EQ(race.which(), 1u);
  race.take();
  const auto e = run(race);
  ASSERT_EQ(e.how, state::connected);
  EXPECT_EQ(race.which(), 3u);
  EXPECT_LT(e.seconds, 4);
  race.take();
  EXPECT_EQ(run(race).how, state::over);
  EXPECT_FALSE(race.refused()) << "somebody replied";
  race.begin_round();
  ASSERT_EQ(run(race).how, state::connected);
  EXPECT_EQ(race.which(), 1u);
}

}  // namespace
