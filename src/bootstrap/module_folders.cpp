// SPDX-License-Identifier: MIT
#include "bootstrap/module_folders.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include <algorithm>
#include <filesystem>

#include "config.h"

namespace xio::bootstrap {

namespace {

namespace fs = std::filesystem;

// The file that this function was loaded from: libxio, or a program. Of a program the loader knows no more than how it
// was called.
fs::path own_file() {
  Dl_info info{};
  link_map* map = nullptr;
  const auto here = reinterpret_cast<const void*>(&own_file);
  std::error_code failed;
  if (dladdr1(here, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 || map == nullptr) return {};
  if (map->l_name == nullptr || *map->l_name == '\0') return fs::read_symlink("/proc/self/exe", failed);
  return fs::canonical(map->l_name, failed);
}

}  // namespace

std::vector<std::string> module_folders(const bootstrap_options& o) {
  std::vector<std::string> folders;
  const auto add = [&](const fs::path& folder) {
    const std::string name = folder.lexically_normal().string();
    if (std::find(folders.begin(), folders.end(), name) == folders.end()) folders.push_back(name);
  };
  if (!o.modules.empty() && getauxval(AT_SECURE) == 0) add(o.modules);
  if (const fs::path file = own_file(); !file.empty()) {
    const fs::path beside = file.parent_path();
    add(beside / "xio");
    add(beside / XIO_LIBDIR_FROM_BINDIR / "xio");
    add(beside.filename() == ".libs" ? beside : beside / ".libs");
  }
  add(fs::path(XIO_LIBDIR) / "xio");
  return folders;
}

}  // namespace xio::bootstrap
