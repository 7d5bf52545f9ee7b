// SPDX-License-Identifier: MIT
// A folder that stands for /: files and links as sysfs, proc and dev have them. Removed when it goes.
#pragma once
#include "../gtest.hpp"

#include <filesystem>

namespace xio::test {

struct sysfs_tree {
  sysfs_tree() {
    std::string name = testing::TempDir() + "/xio_sysfs_XXXXXX";
    if (mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no folder " << name;
    root = name;
  }
  ~sysfs_tree() {
    std::error_code ec;
    std::filesystem::remove_all(root, ec);
  }
  sysfs_tree& operator=(sysfs_tree&&) = delete;

  void file(const std::string& path, const std::string& text) const {
    const std::filesystem::path at = root + path;
    std::filesystem::create_directories(at.parent_path());
    std::ofstream(at) << text;
  }
  void folder(const std::string& path) const { std::filesystem::create_directories(root + path); }
  void link(const std::string& path, const std::string& target) const {
    const std::filesystem::path at = root + path;
    std::filesystem::create_directories(at.parent_path());
    std::error_code ec;
    std::filesystem::remove(at, ec);
    std::filesystem::create_symlink(target, at);
  }

  std::string root;
};

}  // namespace xio::test
