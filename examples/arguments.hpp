// SPDX-License-Identifier: MIT
// The examples' arguments.
#pragma once
#include <cerrno>
#include <cstdint>

#include "check.hpp"

// Arguments by position. All are looked at before anything is done.
class arguments {
 public:
  arguments(int argc, char** argv, const char* usage) : argc_(argc), argv_(argv), usage_(usage) {}

  const char* text(const char* what, const char* otherwise = nullptr) {
    if (at_ >= argc_ && otherwise != nullptr) return otherwise;
    if (at_ >= argc_ || *argv_[at_] == 0 || *argv_[at_] == '-') leave(2, "%s is missing\nusage: %s", what, usage_);
    return argv_[at_++];
  }
  uint64_t number(const char* what, uint64_t otherwise, uint64_t least, uint64_t most) {
    if (at_ >= argc_) return otherwise;
    const char* given = argv_[at_++];
    char* end = nullptr;
    errno = 0;
    const unsigned long long value = std::strtoull(given, &end, 10);
    if (*given < '0' || *given > '9' || *end != 0 || errno != 0 || value < least || value > most)
      leave(2, "%s is '%s', but wants %llu to %llu\nusage: %s", what, given, static_cast<unsigned long long>(least),
            static_cast<unsigned long long>(most), usage_);
    return value;
  }
  void end() const {
    if (at_ < argc_) leave(2, "'%s' is one argument too many\nusage: %s", argv_[at_], usage_);
  }

 private:
  int argc_, at_ = 1;
  char** argv_;
  const char* usage_;
};
