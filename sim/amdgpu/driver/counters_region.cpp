// SPDX-License-Identifier: MIT
// libhsakmt shares the use of performance counters by a file and a semaphore in /dev/shm, which stay when a process is
// killed. There are no counters here: the file is one of the session's folder, and the semaphore the process's own.
#include <dlfcn.h>
#include <fcntl.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdarg>
#include <cstring>

#include "amdgpu/driver/settings.hpp"

#define AMDGPU_SHOWN extern "C" __attribute__((visibility("default")))

namespace {

template <class Function>
Function next(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

bool is_ours(const char* name) {
  if (name == nullptr || amdgpu::session_folder() == nullptr) return false;
  if (*name == '/') ++name;
  return std::strncmp(name, "hsakmt_", 7) == 0;
}

std::string there(const char* name) {
  return std::string(amdgpu::session_folder()) + "/" + (*name == '/' ? name + 1 : name);
}

sem_t* own_semaphore(unsigned value) {
  static sem_t semaphore;
  static const int made = sem_init(&semaphore, 0, value);
  static_cast<void>(made);
  return &semaphore;
}

}  // namespace

AMDGPU_SHOWN int shm_open(const char* name, int flags, mode_t mode) {
  static const auto real = next(static_cast<int (*)(const char*, int, mode_t)>(nullptr), "shm_open");
  return is_ours(name) ? ::open(there(name).c_str(), flags | O_CLOEXEC, mode) : real(name, flags, mode);
}

AMDGPU_SHOWN int shm_unlink(const char* name) {
  static const auto real = next(static_cast<int (*)(const char*)>(nullptr), "shm_unlink");
  return is_ours(name) ? ::unlink(there(name).c_str()) : real(name);
}

AMDGPU_SHOWN sem_t* sem_open(const char* name, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const bool makes = (flags & O_CREAT) != 0;
  const mode_t mode = makes ? va_arg(more, mode_t) : 0;
  const unsigned value = makes ? va_arg(more, unsigned) : 0;
  va_end(more);
  if (is_ours(name)) return own_semaphore(value);
  static const auto real = next(static_cast<sem_t* (*)(const char*, int, ...)>(nullptr), "sem_open");
  return makes ? real(name, flags, mode, value) : real(name, flags);
}

AMDGPU_SHOWN int sem_close(sem_t* semaphore) {
  if (amdgpu::session_folder() != nullptr && semaphore == own_semaphore(1)) return 0;
  static const auto real = next(static_cast<int (*)(sem_t*)>(nullptr), "sem_close");
  return real(semaphore);
}

AMDGPU_SHOWN int sem_unlink(const char* name) {
  static const auto real = next(static_cast<int (*)(const char*)>(nullptr), "sem_unlink");
  return is_ours(name) ? 0 : real(name);
}
