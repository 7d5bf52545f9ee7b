// SPDX-License-Identifier: MIT
// relay: a file crosses every engine. PE 0's kernel reads it from an NVMe queue and sends it chunk by chunk over
// the RDMA lane; PE 1's kernel moves each chunk with the SDMA lane and writes it through its own NVMe queue.
//
//   mpirun -np 2 examples/relay --in FILE --out COPY        (or: xiorun -n 2 examples/relay ...)
//
// What it teaches: one lane of a wave owns one slot and walks a small state machine that never waits, so many
// reads, puts, copies and writes are in flight at once, and lanes that post together share a doorbell.
#include <getopt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "xio/hip.h"
#include "xio/xio.h"
#include "xio/xio_device.hpp"

namespace {

constexpr unsigned k_max_slots = 64;

// Symmetric: the same layout on both PEs.
struct mailbox {
  uint64_t file_bytes;            // PE 0 tells PE 1
  uint64_t failed;                // a PE tells the other to stop
  uint64_t arrived[k_max_slots];  // PE 0 -> 1: chunks of this slot that have arrived
  uint64_t drained[k_max_slots];  // PE 1 -> 0: chunks of this slot that are written
};

struct job {
  xio_ctx_t rdma, sdma;
  xio_storage_t file;
  mailbox* mail;
  unsigned char* outbox;  // PE 0: read here, put from here
  unsigned char* inbox;   // PE 1: puts arrive here
  unsigned char* stage;   // PE 1: copied here, written from here
  uint64_t bytes, chunk;
  uint32_t block;
  int* status;  // host-readable answer of the kernel
};

__device__ uint64_t chunk_bytes(const job& j, uint64_t i) {
  const uint64_t left = j.bytes - i * j.chunk;
  return left < j.chunk ? left : j.chunk;
}

// Drives move whole blocks; the file's true end is set when it is closed.
__device__ uint64_t whole_blocks(const job& j, uint64_t bytes) { return (bytes + j.block - 1) / j.block * j.block; }

// Leaves the first error in *status and tells the other PE.
__device__ void give_up(const job& j, int status, int other) {
  atomicCAS(j.status, static_cast<int>(XIO_OK), status);
  xio_signal_op(j.rdma, &j.mail->failed, 1, XIO_SIGNAL_SET, other);
}

__global__ void tell_size(xio_ctx_t ctx, mailbox* mail, uint64_t bytes, int* status) {
  if (xio_my_pe(ctx) == 0) xio_p(ctx, &mail->file_bytes, bytes, 1);
  *status = xio_barrier_all(ctx);
}

__global__ void send_file(job j) {
  const uint64_t slots = blockDim.x;
  const uint64_t slot = threadIdx.x;
  const uint64_t chunks = (j.bytes + j.chunk - 1) / j.chunk;
  unsigned char* buffer = j.outbox + slot * j.chunk;
  xio_deadline_t idle = xio_deadline(j.rdma);
  xio_req_t reading = 0;
  bool have_read = false;
  for (uint64_t i = slot; i < chunks;) {
    if (!have_read) {
      // The slot is free on both sides once PE 1 has written the chunk that was in it.
      if (xio_signal_fetch(j.rdma, &j.mail->drained[slot]) >= i / slots) {
        reading = xio_read_nbi(j.rdma, buffer, j.file, i * j.chunk, whole_blocks(j, chunk_bytes(j, i)));
        have_read = true;
        idle = xio_deadline(j.rdma);
      }
    } else if (const xio_status_t s = xio_test(j.rdma, reading); s == XIO_OK) {
      xio_put_signal_nbi(j.rdma, j.inbox + slot * j.chunk, buffer, chunk_bytes(j, i), &j.mail->arrived[slot],
                         i / slots + 1, XIO_SIGNAL_SET, 1);
      have_read = false;
      i += slots;
      idle = xio_deadline(j.rdma);
    } else if (s != XIO_PENDING) {
      return give_up(j, s, 1);
    }
    if (xio_signal_fetch(j.rdma, &j.mail->failed) != 0) return give_up(j, XIO_ERR_PEER, 1);
    if (xio_deadline_passed(idle)) return give_up(j, XIO_ERR_TIMEOUT, 1);
    xio_pause();
  }
  if (const xio_status_t s = xio_quiet(j.rdma); s != XIO_OK) give_up(j, s, 1);
}

__global__ void receive_file(job j) {
  const uint64_t slots = blockDim.x;
  const uint64_t slot = threadIdx.x;
  const uint64_t chunks = (j.bytes + j.chunk - 1) / j.chunk;
  unsigned char* in = j.inbox + slot * j.chunk;
  unsigned char* out = j.stage + slot * j.chunk;
  enum { waiting, copying, writing } step = waiting;
  xio_deadline_t idle = xio_deadline(j.rdma);
  xio_req_t request = 0;
  for (uint64_t i = slot; i < chunks;) {
    if (step == waiting) {
      if (xio_signal_fetch(j.rdma, &j.mail->arrived[slot]) > i / slots) {
        request = xio_put_nbi(j.sdma, out, in, chunk_bytes(j, i), 1);
        step = copying;
        idle = xio_deadline(j.rdma);
      }
    } else if (const xio_status_t s = xio_test(step == copying ? j.sdma : j.rdma, request); s == XIO_OK) {
      if (step == copying) {
        request = xio_write_nbi(j.rdma, out, j.file, i * j.chunk, whole_blocks(j, chunk_bytes(j, i)));
        step = writing;
      } else {
        xio_signal_op(j.rdma, &j.mail->drained[slot], i / slots + 1, XIO_SIGNAL_SET, 0);
        step = waiting;
        i += slots;
      }
      idle = xio_deadline(j.rdma);
    } else if (s != XIO_PENDING) {
      return give_up(j, s, 0);
    }
    if (xio_signal_fetch(j.rdma, &j.mail->failed) != 0) return give_up(j, XIO_ERR_PEER, 0);
    if (xio_deadline_passed(idle)) return give_up(j, XIO_ERR_TIMEOUT, 0);
    xio_pause();
  }
  xio_status_t s = xio_quiet(j.rdma);
  if (s == XIO_OK) s = xio_quiet(j.sdma);
  if (s != XIO_OK) give_up(j, s, 0);
}

// After every lane is done: the copy reaches the medium, and both PEs learn how the other fared.
__global__ void finish(job j, int other) {
  if (xio_my_pe(j.rdma) == 1 && j.bytes != 0 && *j.status == XIO_OK) {
    if (const xio_status_t s = xio_storage_flush(j.rdma, j.file); s != XIO_OK) give_up(j, s, other);
  }
  const xio_status_t s = xio_barrier_all(j.rdma);
  if (*j.status == XIO_OK && s != XIO_OK) *j.status = s;
  if (*j.status == XIO_OK && xio_signal_fetch(j.rdma, &j.mail->failed) != 0) *j.status = XIO_ERR_PEER;
}

// --- Host --------------------------------------------------------------------------------------------

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "relay: %s\n", what.c_str());
  std::exit(1);
}
void check(xio_status_t s, const char* what) {
  if (s != XIO_OK) die(std::string(what) + ": " + xio_status_name(s) + ": " + xio_last_error());
}
void check(hipError_t e, const char* what) {
  if (e != hipSuccess) die(std::string(what) + ": " + hipGetErrorString(e));
}

struct arguments {
  std::string in, out;
  uint64_t chunk = 256 * 1024;
  unsigned slots = 16;
};

[[noreturn]] void usage(const std::string& why) {
  std::fprintf(stderr,
               "relay: %s\nusage: mpirun -np 2 relay --in FILE --out COPY [--chunk BYTES] [--slots N]\n"
               "  --chunk BYTES  bytes per transfer, a multiple of 4096 (default 262144)\n"
               "  --slots N      transfers in flight, 1 to 64 (default 16)\n",
               why.c_str());
  std::exit(2);
}

uint64_t number(const char* text, const char* what) {
  char* end = nullptr;
  const uint64_t value = std::strtoull(text, &end, 10);
  if (end == text || *end != 0 || *text == '-') usage(std::string(what) + " wants a number, not '" + text + "'");
  return value;
}

arguments parse(int argc, char** argv) {
  static const option options[] = {{"in", 1, nullptr, 'i'},
                                   {"out", 1, nullptr, 'o'},
                                   {"chunk", 1, nullptr, 'c'},
                                   {"slots", 1, nullptr, 's'},
                                   {nullptr, 0, nullptr, 0}};
  arguments a;
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, "", options, nullptr)) != -1;) {
    if (c == 'i') a.in = optarg;
    if (c == 'o') a.out = optarg;
    if (c == 'c') a.chunk = number(optarg, "--chunk");
    if (c == 's') a.slots = static_cast<unsigned>(std::min<uint64_t>(number(optarg, "--slots"), 1u << 20));
    if (c == '?') usage(std::string("unknown or incomplete option '") + argv[optind - 1] + "'");
  }
  if (optind < argc) usage(std::string("unexpected argument '") + argv[optind] + "'");
  if (a.in.empty() || a.out.empty()) usage("--in and --out are needed");
  if (a.chunk == 0 || a.chunk % 4096 != 0) usage("--chunk must be a multiple of 4096");
  if (a.slots < 1 || a.slots > k_max_slots) usage("--slots must be 1 to 64");
  return a;
}

uint64_t size_of(const std::string& path) {
  struct stat st;
  if (stat(path.c_str(), &st) != 0) die("cannot read '" + path + "': give an existing file with --in");
  if (!S_ISREG(st.st_mode)) die("'" + path + "' is not a regular file; give one with --in");
  return static_cast<uint64_t>(st.st_size);
}

class relay {
 public:
  relay(xio_world_t* world, const arguments& a) : world_(world), args_(a), me_(xio_my_pe(world)) {}

  int run() {
    open_engines();
    exchange_size();
    open_file();
    const auto start = std::chrono::steady_clock::now();
    transfer();
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return close();
  }

 private:
  void open_engines() {
    xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
    attr.route = XIO_ROUTE_RDMA;
    check(xio_ctx_create(world_, &attr, &job_.rdma), "RDMA context");
    attr.route = XIO_ROUTE_SDMA;
    check(xio_ctx_create(world_, &attr, &job_.sdma), "SDMA context");
    const size_t window = args_.slots * args_.chunk;
    job_.chunk = args_.chunk;
    job_.outbox = allocate(window);
    job_.inbox = allocate(window);
    job_.stage = allocate(window);
    void* mail = nullptr;
    check(xio_calloc(world_, 1, sizeof(mailbox), &mail), "mailbox");
    job_.mail = static_cast<mailbox*>(mail);
    void* status = nullptr;
    check(hipHostMalloc(&status, sizeof(int), 0), "status word");
    job_.status = static_cast<int*>(status);
    *job_.status = XIO_OK;
  }

  unsigned char* allocate(size_t bytes) {
    void* block = nullptr;
    check(xio_malloc(world_, bytes, &block), "buffers (a larger XIO_HEAP_SIZE, or a smaller --chunk or --slots)");
    return static_cast<unsigned char*>(block);
  }

  void exchange_size() {
    const uint64_t bytes = me_ == 0 ? size_of(args_.in) : 0;
    hipLaunchKernelGGL(tell_size, dim3(1), dim3(1), 0, nullptr, job_.rdma, job_.mail, bytes, job_.status);
    wait("exchange of the size");
    job_.bytes = bytes;
    if (me_ == 1)
      check(hipMemcpy(&job_.bytes, &job_.mail->file_bytes, sizeof job_.bytes, hipMemcpyDeviceToHost), "size");
  }

  // The copy gets its name only when it is whole.
  std::string part() const { return args_.out + ".part"; }

  void open_file() {
    xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
    attr.bytes = job_.bytes;
    attr.flags = me_ == 0 ? XIO_STORAGE_READ_ONLY : XIO_STORAGE_CREATE | XIO_STORAGE_TRUNCATE;
    job_.block = 1;
    if (job_.bytes == 0) {
      if (me_ == 1) {
        FILE* empty = std::fopen(part().c_str(), "w");
        if (empty == nullptr || std::fclose(empty) != 0) die("cannot create '" + part() + "'");
      }
      return;
    }
    const std::string name = "file:" + (me_ == 0 ? args_.in : part());
    check(xio_storage_open(world_, name.c_str(), &attr, &job_.file), name.c_str());
    uint64_t capacity = 0;
    check(xio_storage_size(world_, job_.file, &capacity, &job_.block), "storage size");
  }

  void transfer() {
    if (me_ == 0)
      hipLaunchKernelGGL(send_file, dim3(1), dim3(args_.slots), 0, nullptr, job_);
    else
      hipLaunchKernelGGL(receive_file, dim3(1), dim3(args_.slots), 0, nullptr, job_);
    check(hipDeviceSynchronize(), "kernel");
    hipLaunchKernelGGL(finish, dim3(1), dim3(1), 0, nullptr, job_, 1 - me_);
    check(hipDeviceSynchronize(), "kernel");
  }

  int close() {
    const int status = *job_.status;
    check(hipHostFree(job_.status), "status word");
    std::string report;
    if (job_.bytes != 0) {
      report = engines();
      check(xio_storage_close(world_, job_.file), "close");
    }
    if (status != XIO_OK) {
      if (me_ == 1) unlink(part().c_str());
      std::fprintf(stderr, "relay: PE %d: %s; %s was not written\n", me_,
                   xio_status_name(static_cast<xio_status_t>(status)), args_.out.c_str());
    } else if (me_ == 1 && rename(part().c_str(), args_.out.c_str()) != 0) {
      die("cannot rename '" + part() + "' to '" + args_.out + "'");
    }
    if (status == XIO_OK && me_ == 0)
      std::printf("relay: %llu bytes in %.3f s, %.1f MB/s\n", static_cast<unsigned long long>(job_.bytes), seconds_,
                  static_cast<double>(job_.bytes) / 1e6 / seconds_);
    std::fputs(report.c_str(), stdout);
    std::fflush(stdout);
    return status == XIO_OK ? 0 : 1;
  }

  std::string engines() {
    xio_engine_stats_t nvme{}, rdma{}, sdma{};
    check(xio_storage_stats(world_, job_.file, &nvme), "statistics");
    check(xio_ctx_stats(world_, job_.rdma, XIO_ROUTE_RDMA, &rdma), "statistics");
    check(xio_ctx_stats(world_, job_.sdma, XIO_ROUTE_SDMA, &sdma), "statistics");
    return line("nvme", nvme) + line("rdma", rdma) + line("sdma", sdma);
  }

  std::string line(const char* name, const xio_engine_stats_t& s) const {
    char text[128];
    std::snprintf(text, sizeof text, "  PE %d %s %8llu ops %8llu doorbells %13llu bytes\n", me_, name,
                  static_cast<unsigned long long>(s.ops), static_cast<unsigned long long>(s.doorbells),
                  static_cast<unsigned long long>(s.bytes));
    return text;
  }

  void wait(const char* what) {
    check(hipDeviceSynchronize(), what);
    if (*job_.status != XIO_OK)
      die(std::string(what) + ": " + xio_status_name(static_cast<xio_status_t>(*job_.status)));
  }

  xio_world_t* world_;
  arguments args_;
  int me_;
  job job_{};
  double seconds_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const arguments a = parse(argc, argv);
  xio_world_t* world = nullptr;
  check(xio_init(nullptr, &world), "xio_init");
  if (xio_n_pes(world) != 2) die("needs 2 PEs, not " + std::to_string(xio_n_pes(world)) + ": start with mpirun -np 2");
  const int code = relay(world, a).run();
  check(xio_finalize(world), "xio_finalize");
  return code;
}
