// SPDX-License-Identifier: MIT
#include "tools/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

namespace xio::tools {

void open_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd)
    if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd) std::_Exit(1);
}

int ended(const char* tool, int status) {
  errno = 0;
  bool written = std::fflush(stdout) == 0;
  int why = errno;
  // CLI11 prints by it; what of that could not be written is known by now.
  std::cout.flush();
  written = written && std::cout.good() && std::ferror(stdout) == 0;
  // Network file systems say only now that there was no room.
  if (const int copy = written ? dup(STDOUT_FILENO) : -1; copy >= 0 && close(copy) != 0) {
    why = errno;
    written = false;
  }
  if (written) return status;
  std::fprintf(stderr, "%s: standard output could not be written%s%s\n", tool, why != 0 ? ": " : "",
               why != 0 ? std::strerror(why) : "");
  return status != 0 ? status : 1;
}

}  // namespace xio::tools
