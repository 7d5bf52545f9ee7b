// SPDX-License-Identifier: MIT
// Words that come from outside (environment, names of drives, faults, texts of the kernel) are taken or refused by
// one sentence: 20 000 of each kind, made of good ones that were spoilt. XIO_TEST_SEED repeats a
// run.
#include <random>

#include "../gtest.hpp"
#include "base/error.hpp"
#include "base/options.hpp"
#include "config.h"
#include "transport/nvme/iova.hpp"
#include "transport/nvme/kmod_drive.hpp"
#include "transport/nvme/vfio_function.hpp"
#include "transport/nvme/vfio_type1.hpp"
#if XIO_ENABLE_MODEL
#include "model/fault_text.hpp"
#endif

namespace {

constexpr int k_words = 20000;

unsigned seed() {
  const char* given = std::getenv("XIO_TEST_SEED");
  return given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 0)) : 20261122u;
}

class words {
 public:
  explicit words(std::vector<std::string> good) : good_(std::move(good)), random_(seed()) {}

  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  // One of the good, with up to four changes; without octets of 0, which no C string holds.
  std::string next() {
    std::string w = good_[below(good_.size())];
    for (std::uint64_t changes = below(5); changes > 0; --changes) change(w);
    return w;
  }

 private:
  char letter() {
    static constexpr char k_telling[] = "0123456789abcdefxXkKMGT=@:/,.-+ |%e~\n";
    return below(3) == 0 ? static_cast<char>(1 + below(255)) : k_telling[below(sizeof k_telling - 1)];
  }
  void change(std::string& w) {
    const std::size_t at = below(w.size() + 1);
    switch (below(7)) {
      case 0: w.insert(at, 1, letter()); break;
      case 1: w.erase(at, 1 + below(3)); break;
      case 2:
        if (at < w.size()) w[at] = letter();
        break;
      case 3: w = w.substr(0, at); break;
      case 4: w += good_[below(good_.size())]; break;
      case 5: w.insert(at, std::to_string(below(2) == 0 ? ~std::uint64_t{0} : random_() >> below(64))); break;
      default: w.insert(at, below(50) == 0 ? 5000 : 20, letter());
    }
  }
  std::vector<std::string> good_;
  std::mt19937_64 random_;
};

struct tally {
  int taken = 0, refused = 0;
};

// Nothing may be thrown but xio::error with one of `statuses` and a sentence that is not empty.
void offer(const std::string& word, const std::vector<xio_status_t>& statuses, tally& count,
           const std::function<void()>& body) {
  try {
    body();
    ++count.taken;
  } catch (const xio::error& e) {
    ++count.refused;
    EXPECT_TRUE(std::find(statuses.begin(), statuses.end(), e.status()) != statuses.end())
        << xio_status_name(e.status()) << " for '" << word << "': " << e.what();
    EXPECT_GT(std::strlen(e.what()), 20u) << word;
  } catch (const std::exception& e) {
    ADD_FAILURE() << "'" << word << "' ends in " << e.what();
  }
}

// Both happen, or the words try one side only.
void expect_both(const tally& count) {
  EXPECT_GT(count.taken, k_words / 100);
  EXPECT_GT(count.refused, k_words / 100);
}

}  // namespace

TEST(hostile, values_of_every_option) {
  std::size_t count = 0;
  const xio::option_row* rows = xio::option_rows(&count);
  std::vector<std::string> good{"0", "1", "64k", "2M", "1G", "1T", "18446744073709551615", "0x10", "-1", "", "auto"};
  for (std::size_t i = 0; i < count; ++i) {
    good.emplace_back(rows[i].fallback);
    std::string one;
    for (const char c : std::string(rows[i].limits) + "|") {
      if (c != '|') one += c;
      if (c == '|' && !one.empty()) good.push_back(std::exchange(one, ""));
    }
  }
  words w(good);
  tally t;
  for (int i = 0; i < k_words; ++i) {
    const xio::option_row& row = rows[w.below(count)];
    const std::string word = w.next();
    ASSERT_EQ(setenv(row.variable, word.c_str(), 1), 0);
    // Only this variable is set, so the sentence is about it.
    offer(word, {XIO_ERR_CONFIG, XIO_ERR_UNSUPPORTED}, t, [] { xio::options::from_environment(); });
    unsetenv(row.variable);
  }
  expect_both(t);
}

TEST(hostile, sizes_are_never_more_than_was_said) {
  words w({"0", "1", "4096", "64k", "16M", "1G", "3T", "18446744073709551615", "17179869184G"});
  tally t;
  for (int i = 0; i < k_words; ++i) {
    const std::string word = w.next();
    offer(word, {XIO_ERR_CONFIG}, t, [&] {
      const std::uint64_t v = xio::parse_size(word, "X");
      // Taken only as digits and at most one unit: and then it is that number, which a double knows to 2^-52.
      char* unit = nullptr;
      double wanted = std::strtod(word.c_str(), &unit);
      for (const char* const units = "kmgt"; *unit != 0;) {
        const char* const at = std::strchr(units, std::tolower(*unit));
        ASSERT_NE(at, nullptr) << word;
        wanted *= static_cast<double>(1ull << (10 * (at - units + 1)));
        ASSERT_EQ(unit[1], 0) << word;
        break;
      }
      EXPECT_NEAR(static_cast<double>(v), wanted, wanted * 1e-12) << word;
    });
  }
  expect_both(t);
}

TEST(hostile, names_of_drives) {
  words w({"nvme:0000:3b:00.0", "nvme:3b:00.0/1", "nvme:ffff:ff:1f.7/4294967294", "nvme:00:00.0/0", "/dev/nvme0n1",
           "/dev/nvme12n3"});
  tally t;
  for (int i = 0; i < k_words; ++i) {
    const std::string word = w.next();
    offer(word, {XIO_ERR_ARG}, t, [&] {
      const auto v = xio::nvme::parse_vfio_name(word);
      EXPECT_LE(v.bus_devfn, 0xffffu) << word;
      EXPECT_TRUE(v.nsid >= 1 && v.nsid <= 0xfffffffe) << word;
      // It becomes part of a path: nothing that leads out of a folder.
      EXPECT_EQ(v.bdf.find_first_not_of("0123456789abcdef:."), std::string::npos) << word;
      EXPECT_EQ(v.bdf.find(".."), std::string::npos) << word;
    });
    tally ignored;
    offer(word, {XIO_ERR_ARG, XIO_ERR_IO}, ignored, [&] {
      xio::nvme::find_kmod_drive("kmod:" + word, word, {"/nonexistent", "/nonexistent"});
    });
    EXPECT_EQ(ignored.taken, 0) << word;
  }
  expect_both(t);
}

#if XIO_ENABLE_MODEL
TEST(hostile, faults_of_software_devices) {
  words w({"drop=0.01", "dup=0.005,delay=0.01:2ms", "error@1000=remote_access/pe1/queue0", "seed=7", "down@3",
           "reorder=1", "nvme_error@5=write_fault", "nvme_error=0.5:0x281", "nvme_delay@1=2ms", "nvme_lose@2",
           "nvme_die=0.1", "nvme_shuffle", "nvme_file@3=no_space", ",", ""});
  tally t;
  for (int i = 0; i < k_words; ++i) {
    const std::string word = w.next();
    offer(word, {XIO_ERR_CONFIG}, t, [&] {
      const auto rules = xio::model::parse_faults(word);
      for (const auto& r : rules.nic) EXPECT_TRUE(r.chance >= 0 && r.chance <= 1 && r.wait.count() >= 0) << word;
      for (const auto& f : rules.drive) EXPECT_TRUE(f.chance >= 0 && f.chance <= 1 && f.delay.count() >= 0) << word;
    });
  }
  expect_both(t);
}
#endif

// Results of VFIO_IOMMU_GET_INFO whose chain of capabilities is wrong in any way: no read goes past it, the walk ends,
// and its ranges are ranges.
TEST(hostile, addresses_that_an_iommu_tells_of) {
  std::mt19937_64 random(seed());
  for (int i = 0; i < k_words; ++i) {
    std::vector<std::byte> info(random() % 200);
    for (auto& b : info) b = static_cast<std::byte>(random() % 4 == 0 ? random() : random() % 64);
    // Half of them say that there is a chain (VFIO_IOMMU_INFO_CAPS, bit 1 of the flags at 4).
    if (info.size() > 8 && i % 2 == 0) info[4] = std::byte{3};
    const auto ranges = xio::nvme::read_iova_ranges(info);
    EXPECT_FALSE(ranges.empty());
    for (const auto& r : ranges) EXPECT_LE(r.first, r.last);
    xio::nvme::iova_ranges addresses(ranges, 4096);
    try {
      const std::uint64_t at = addresses.take(8192, random());
      EXPECT_NE(at, 0u);
      EXPECT_EQ(at % 4096, 0u);
      addresses.give_back(at);
    } catch (const xio::error& e) {
      EXPECT_EQ(e.status(), XIO_ERR_NO_MEMORY) << e.what();
    }
  }
}
