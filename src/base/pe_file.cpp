// SPDX-License-Identifier: MIT
#include "base/pe_file.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace xio {

std::string pe_file(std::string name, int pe, int n_pes) {
  name = std::filesystem::absolute(name).string();  // the program may go to another folder
  const auto at = name.find("%p");
  if (at != std::string::npos) return name.replace(at, 2, std::to_string(pe));
  return n_pes > 1 ? name + "." + std::to_string(pe) : name;
}

std::string replace_file(const std::string& name, const std::string& text) {
  static std::atomic<unsigned> count{0};  // several worlds may have one file
  const std::string made = name + ".new." + std::to_string(getpid()) + "." + std::to_string(count++);
  struct stat st {};
  const bool there = lstat(name.c_str(), &st) == 0;
  if (there && !S_ISREG(st.st_mode)) return name + " is no regular file; name another";
  if (there) {
    char begins = text.front();
    const unique_fd old(open(name.c_str(), O_RDONLY | O_CLOEXEC));
    if (!old || read(old.get(), &begins, 1) < 0 || begins != text.front())
      return name + " has data of another kind, and stays as it is; name another";
  }
  rlimit limit{};
  // Beyond it the system ends the program.
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && text.size() > limit.rlim_cur)
    return name + ": " + errno_text(EFBIG) + "; raise ulimit -f";
  const unique_fd to(open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  std::size_t done = 0;
  for (ssize_t n = 0; to && done < text.size(); done += static_cast<std::size_t>(n))
    if ((n = write(to.get(), text.data() + done, text.size() - done)) <= 0) break;
  if (to && done == text.size() && rename(made.c_str(), name.c_str()) == 0) return "";
  const int err = errno;
  if (to) unlink(made.c_str());
  return name + ": " + errno_text(err) + "; name a file in a folder with room that this user may write";
}

}  // namespace xio
