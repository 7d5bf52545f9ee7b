// SPDX-License-Identifier: MIT
// Reads or writes of a file from and to GPU memory by cuFile alone, as its documentation shows them: one thread for
// each op under way, its buffer registered. Prints how many a second, CPU microseconds of one, cores and cuFile's mode;
// bench/vs_fio lays them beside XIO's.
//
//   bench/plain_cufile FILE read|write BYTES DEPTH SECONDS     CUFILE_LIBRARY: its file, libcufile.so.0 unless given
//
// The file is opened with O_DIRECT where CUFILE_DIRECT=1 says so, else its data come from the page cache.
// Without the driver nvidia-fs cuFile copies by the CPU (its compatibility mode), and the program says so.
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

// As cufile.h (CUDA 13.0) has them.
struct result {
  int code, of_driver;
};
struct description {
  int type = 1;  // a descriptor
  union {
    int fd;
    void* other;
  };
  const void* operations = nullptr;
};
result (*driver_open)();
result (*driver_close)();
result (*handle_register)(void**, description*);
void (*handle_deregister)(void*);
result (*buffer_register)(const void*, size_t, int);
result (*buffer_deregister)(const void*);
ssize_t (*move_in)(void*, void*, size_t, off_t, off_t);
ssize_t (*move_out)(void*, const void*, size_t, off_t, off_t);

[[noreturn]] void leave(const std::string& why) {
  std::fprintf(stderr, "plain_cufile: %s\n", why.c_str());
  std::exit(1);
}
void check(bool well, const char* what) {
  if (!well) leave(std::string(what) + " failed");
}

template <class Call>
void find(void* library, Call& call, const char* name) {
  call = reinterpret_cast<Call>(dlsym(library, name));
  if (call == nullptr) leave(std::string("no call ") + name);
}

void load() {
  const char* asked = std::getenv("CUFILE_LIBRARY");
  void* library = dlopen(asked != nullptr ? asked : "libcufile.so.0", RTLD_NOW);
  if (library == nullptr) leave(dlerror());
  find(library, driver_open, "cuFileDriverOpen");
  find(library, driver_close, "cuFileDriverClose_v2");
  find(library, handle_register, "cuFileHandleRegister");
  find(library, handle_deregister, "cuFileHandleDeregister");
  find(library, buffer_register, "cuFileBufRegister");
  find(library, buffer_deregister, "cuFileBufDeregister");
  find(library, move_in, "cuFileRead");
  find(library, move_out, "cuFileWrite");
}

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

struct job {
  void* handle;
  int fd;
  bool reads;
  size_t bytes, places;
  std::chrono::steady_clock::time_point end;
  std::atomic<uint64_t> ops{0};
};

void work(job& j, uint64_t seed) {
  void* buffer = nullptr;
  check(cudaSetDevice(0) == cudaSuccess && cudaMalloc(&buffer, j.bytes) == cudaSuccess, "cudaMalloc");
  check(cudaMemset(buffer, 0, j.bytes) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess, "cudaMemset");
  const bool registered = buffer_register(buffer, j.bytes, 0).code == 0;
  uint64_t place = seed;
  for (bool first = true; first || std::chrono::steady_clock::now() < j.end; first = false) {
    place = place * 6364136223846793005u + 1442695040888963407u;
    const off_t at = static_cast<off_t>((place >> 33) % j.places * j.bytes);
    const ssize_t n = j.reads ? move_in(j.handle, buffer, j.bytes, at, 0) : move_out(j.handle, buffer, j.bytes, at, 0);
    check(n == static_cast<ssize_t>(j.bytes), "cuFileRead or cuFileWrite");
    ++j.ops;
    if (!first) continue;
    std::vector<char> moved(j.bytes), there(j.bytes);
    check(cudaMemcpy(moved.data(), buffer, j.bytes, cudaMemcpyDeviceToHost) == cudaSuccess, "cudaMemcpy");
    check(pread(j.fd, there.data(), j.bytes, at) == n && (!j.reads || moved == there), "the comparison");
  }
  if (registered) (void)buffer_deregister(buffer);
  (void)cudaFree(buffer);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) leave("FILE read|write BYTES DEPTH SECONDS");
  setenv("CUFILE_ALLOW_COMPAT_MODE", "true", 0);
  load();
  check(cudaSetDevice(0) == cudaSuccess && cudaFree(nullptr) == cudaSuccess, "cudaSetDevice");
  check(driver_open().code == 0, "cuFileDriverOpen");
  const bool reads = std::strcmp(argv[2], "read") == 0;
  const char* const direct = std::getenv("CUFILE_DIRECT");
  const int past = direct != nullptr && std::strcmp(direct, "1") == 0 ? O_DIRECT : 0;
  const int fd = open(argv[1], (reads ? O_RDONLY : O_RDWR) | past);
  struct stat info {};
  if (fd < 0 || fstat(fd, &info) != 0) leave(std::string(argv[1]) + ": " + std::strerror(errno));
  const int cached = open(argv[1], O_RDONLY);
  description what;
  what.fd = fd;
  job j{};
  j.fd = cached, j.reads = reads, j.bytes = std::strtoull(argv[3], nullptr, 10);
  j.places = j.bytes == 0 ? 0 : static_cast<size_t>(info.st_size) / j.bytes;
  check(j.places != 0, "dividing the file");
  check(handle_register(&j.handle, &what).code == 0, "cuFileHandleRegister");
  const double before = cpu_seconds();
  const auto begin = std::chrono::steady_clock::now();
  j.end = begin + std::chrono::seconds(std::atoi(argv[5]));
  std::vector<std::thread> threads;
  for (int i = 0; i < std::atoi(argv[4]); ++i) threads.emplace_back(work, std::ref(j), i + 1);
  for (std::thread& t : threads) t.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const double cpu = cpu_seconds() - before, ops = static_cast<double>(j.ops);
  std::printf("%.0f %.2f %.2f %s\n", ops / took.count(), cpu * 1e6 / ops, cpu / took.count(),
              access("/proc/driver/nvidia-fs", F_OK) == 0 ? "direct" : "compatibility");
  handle_deregister(j.handle);
  close(fd);
  (void)driver_close();
}
