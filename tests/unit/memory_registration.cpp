// SPDX-License-Identifier: MIT
// The rows of registered memory while kernels look through them: a kernel may read a row's base before and its bytes
// after the row goes to other memory, or the other way round, and must not take it for the memory that it looks for.
#include "../gtest.hpp"
#include "memory/registration.hpp"

#include <random>

namespace xio::memory {
namespace {

struct range {
  std::uint64_t base, bytes;
  bool overlaps(const range& o) const { return base < o.base + o.bytes && o.base < base + bytes; }
};

// Registers and keeps what the rows show, as the device has it.
class table {
 public:
  table() { r_.row(0) = dev::region_view{0x100000, 0x100000, {}, {}, 1, 0, 0, {}, {}}; }

  // True if no half of a row, old or new, makes another out of what is registered.
  bool add(const range& what) {
    const std::uint32_t i = r_.add(reinterpret_cast<void*>(what.base), what.bytes);
    const range was = rows_[i];
    rows_[i] = what;
    bool good = true;
    for (std::uint32_t k = 0; k < dev::k_max_regions; ++k) {
      if (k == i || r_.row(k).live == 0) continue;
      const range other{r_.row(k).base, r_.row(k).bytes};
      good = good && !other.overlaps({was.base, what.bytes}) && !other.overlaps({what.base, was.bytes});
    }
    return good;
  }
  void remove(const range& what) { r_.remove(r_.find(reinterpret_cast<void*>(what.base))); }
  std::uint32_t row_of(const range& what) { return r_.find(reinterpret_cast<void*>(what.base)); }

 private:
  registration r_;
  range rows_[dev::k_max_regions]{};
};

TEST(registration, a_long_buffer_does_not_follow_a_short_one_in_front_of_another) {
  table t;
  const range small{0x7000010000, 0x1000}, other{0x7000020000, 0x1000}, big{0x7000900000, 0x40000};
  EXPECT_TRUE(t.add(small));
  EXPECT_TRUE(t.add(other));
  t.remove(small);
  EXPECT_TRUE(t.add(big));
  // And the other way round: a short one in front of another does not follow a long one.
  t.remove(big);
  EXPECT_TRUE(t.add(small));
}

TEST(registration, the_same_buffer_has_the_same_row_again) {
  table t;
  const range one{0x7000010000, 0x1000}, longer{0x7000010000, 0x3000};
  for (const range& r : {one, longer, one}) {
    EXPECT_TRUE(t.add(r));
    EXPECT_EQ(t.row_of(r), 1u) << "which kernels look at first";
    t.remove(r);
  }
}

TEST(registration, no_mix_of_many_that_come_and_go) {
  std::mt19937 random(7);
  table t;
  std::optional<range> slots[40];
  for (int n = 0; n < 20000; ++n) {
    const std::size_t s = random() % 40;
    if (slots[s]) {
      t.remove(*slots[s]);
      slots[s].reset();
    } else {
      slots[s] = range{0x1000000 + 0x10000 * s, 0x1000 * (1 + random() % 16)};
      ASSERT_TRUE(t.add(*slots[s])) << n;
    }
  }
}

// There may be no other row; then it is taken all the same.
TEST(registration, the_last_row_is_taken_whatever_it_held) {
  table t;
  std::vector<range> all;
  for (std::uint64_t i = 1; i < dev::k_max_regions; ++i) all.push_back({0x1000000 + 0x10000 * i, 0x1000});
  for (const range& r : all) EXPECT_TRUE(t.add(r));
  t.remove(all[0]);
  EXPECT_FALSE(t.add({0x9000000, 0x40000}));
  EXPECT_EQ(t.row_of({0x9000000, 0}), 1u);
}

}  // namespace
}  // namespace xio::memory
