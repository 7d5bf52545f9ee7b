// SPDX-License-Identifier: MIT
// main() of the programs that hold a folder's tests. With --source=FILE the tests of that file alone run: `make check`
// starts the program once a file, so that a failure names its file and no test sees the process of another file.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace {

// Whether `file`, as a compiler was given it, is `source`: "a.cpp", "tests/unit/a.cpp", or by another way from the
// root.
bool is_source(std::string_view file, std::string_view source) {
  if (const auto at = source.rfind("tests/"); at != source.npos) source.remove_prefix(at);
  if (!file.ends_with(source)) return false;
  return file.size() == source.size() || file[file.size() - source.size() - 1] == '/';
}

// The names of all tests that `source` has, joined as a filter of GoogleTest's.
std::string tests_of(std::string_view source) {
  std::string filter;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      if (!is_source(test.file(), source)) continue;
      if (!filter.empty()) filter += ':';
      filter += std::string(suite.name()) + '.' + test.name();
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i], option = "--source=";
    if (!argument.starts_with(option)) {
      std::fprintf(stderr, "%s: unknown argument '%s'; it knows --source=FILE and GoogleTest's --help\n", argv[0],
                   argv[i]);
      return 2;
    }
    const std::string_view source = argument.substr(option.size());
    const std::string filter = tests_of(source), given = GTEST_FLAG_GET(filter);
    if (filter.empty()) {
      std::fprintf(stderr, "%s: no test of %s is in this program; list the file in its room's module.am\n", argv[0],
                   argv[i] + option.size());
      return 1;
    }
    // A filter beside it can take tests away.
    GTEST_FLAG_SET(filter, given.starts_with('-') ? filter + given : filter);
  }
  return RUN_ALL_TESTS();
}
