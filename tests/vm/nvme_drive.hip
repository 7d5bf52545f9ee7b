// SPDX-License-Identifier: MIT
// What tests/vm/nvme.sh does to drives: kernels by XIO, and plain reads and writes by the kernel's driver.
//
//   refused NAME...
//       each is refused; the sentences are printed
//   asked NAME
//       so are attributes that the drive cannot have
//   move NAME OUTER OLD NEW QUEUES
//       blocks carry OUTER, in the middle half OLD; there they get NEW, by pieces of every size
//   copy FROM TO
//       the first quarter, between two drives that are open at the same time
//   zero NAME
//       compares and zeroes the second quarter, then writes it as it was
//   faults NAME READ WRITE
//       block READ cannot be read and WRITE not be written: the lanes that asked for them get an error, no others
//   leave NAME
//       closed with its queue full of reads: from then on the memory is nobody's but ours
//   sealed NAME
//       a namespace whose medium cannot be written: it can be read, and a write ends in a status
//   endless NAME
//       reads until somebody takes the drive away, which ends everything in time
//   stamp DISK SALT
//       writes every block of a disk of the kernel's driver
//   verify DISK OUTER MIDDLE
//       every block carries OUTER, those of the middle half MIDDLE
//
// Every 8 bytes say where on the drive they belong. XIO_TEST_WINDOW: a file whose second half is the memory of kernels,
// in place of the heap. XIO_TEST_EXPORTER: a device file whose ioctl gives a dma-buf that is (bar_export/), from the
// byte XIO_TEST_EXPORTER_SKIP on.
#include <sys/mman.h>

#include "nvme_disk.hpp"

namespace {

using nvme_disk::k_piece;
using nvme_disk::stamp_of;

constexpr size_t k_guard = 4096;

uint64_t number(const char* text) { return std::strtoull(text, nullptr, 0); }

// ---- refusals -----------------------------------------------------------------------------------------------------

void expect_refusal(xio_world_t* world, const char* name, const xio_storage_attr_t* attr, const char* what) {
  xio_storage_t storage{};
  const xio_status_t status = xio_storage_open(world, name, attr, &storage);
  rig::expect(status != XIO_OK, "%s was opened (%s)", name, what);
  std::printf("refused %s %s: %s: %s\n", name, what, xio_status_name(status), xio_last_error());
  if (status == XIO_OK) MUST(xio_storage_close(world, storage));
}

void asked(xio_world_t* world, const char* name) {
  struct {
    const char* what;
    uint32_t flags, queues, depth, block;
    uint64_t bytes;
  } const cases[] = {{"depth-odd", 0, 0, 48, 0, 0},   {"depth-mqes", 0, 0, 4096, 0, 0},
                     {"queues", 0, 65, 0, 0, 0},      {"block", 0, 0, 0, 2048, 0},
                     {"small", 0, 0, 0, 0, 1u << 30}, {"create", XIO_STORAGE_CREATE, 0, 0, 0, 0}};
  for (const auto& c : cases) {
    xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
    attr.flags = c.flags;
    attr.queues = c.queues;
    attr.depth = c.depth;
    attr.block_bytes = c.block;
    attr.bytes = c.bytes;
    expect_refusal(world, name, &attr, c.what);
  }
}

// ---- data ---------------------------------------------------------------------------------------------------------

// Memory of a device by its dma-buf, whose descriptor stays open.
unsigned char* exported(const rig::team& t, const char* exporter, size_t bytes) {
  const int device = open(exporter, O_RDWR), buffer = device < 0 ? -1 : ioctl(device, 0, 0);
  const off_t size = buffer < 0 ? 0 : lseek(buffer, 0, SEEK_END);
  const char* text = std::getenv("XIO_TEST_EXPORTER_SKIP");
  const size_t skip = text == nullptr ? 0 : number(text);
  if (size < static_cast<off_t>(skip + bytes)) rig::give_up(exporter, "gives no dma-buf of that size");
  void* at = mmap(nullptr, static_cast<size_t>(size), PROT_READ | PROT_WRITE, MAP_SHARED, buffer, 0);
  if (at == MAP_FAILED) rig::give_up(exporter, "gives a dma-buf that cannot be mapped");
  MUST(xio_mem_register(t.world(), at, static_cast<size_t>(size)));
  return static_cast<unsigned char*>(at) + skip;
}

// Memory that kernels and drives share: of the heap, or of another device.
unsigned char* arena(const rig::team& t, size_t bytes) {
  if (const char* exporter = std::getenv("XIO_TEST_EXPORTER")) return exported(t, exporter, bytes);
  const char* window = std::getenv("XIO_TEST_WINDOW");
  if (window == nullptr) return t.symmetric<unsigned char>(bytes);
  const int fd = open(window, O_RDWR);
  struct stat s {};
  if (fd < 0 || fstat(fd, &s) != 0) rig::give_up(window, "cannot be opened");
  const size_t half = static_cast<size_t>(s.st_size) / 2;
  if (bytes > half) rig::give_up(window, "is too small");
  void* at = mmap(nullptr, half, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(half));
  close(fd);
  if (at == MAP_FAILED) rig::give_up(window, "cannot be mapped");
  MUST(xio_mem_register(t.world(), at, half));
  return static_cast<unsigned char*>(at);
}

struct job {
  xio_ctx_t ctx;
  xio_storage_t storage;
  unsigned char* buffer;  // of byte `first`
  uint64_t first, bytes;
  uint32_t block;
  uint64_t salt;
  int* wrong;
};

__device__ void blame(const job& j, xio_status_t status) {
  if (status != XIO_OK) xio::dev::fetch_add<xio::dev::scope::agent, xio::dev::order::relaxed>(j.wrong, 1);
}

// Each thread takes stretches of 64 KiB in turn, cut into pieces of 1, 2, 3, 5, 8 ... blocks, and at last what is left.
template <class Op>
__device__ void pieces(const job& j, Op op) {
  const uint64_t threads = uint64_t{gridDim.x} * blockDim.x, me = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (uint64_t at = me * k_piece; at < j.bytes; at += threads * k_piece) {
    const uint64_t end = at + k_piece < j.bytes ? at + k_piece : j.bytes;
    uint64_t small = 1, large = 2;
    for (uint64_t from = at; from < end;) {
      const uint64_t want = small * j.block;
      const uint64_t size = want < end - from ? want : end - from;
      op(from, size);
      from += size;
      const uint64_t next = small + large;
      small = large;
      large = next;
    }
  }
}

__global__ void write_all(job j) {
  pieces(j, [&](uint64_t at, uint64_t size) {
    for (uint64_t i = 0; i < size; i += 8) {
      const uint64_t word = stamp_of(j.first + at + i, j.salt);
      // Words of the buffer are as aligned as it is: by 4.
      auto* half = reinterpret_cast<uint32_t*>(j.buffer + at + i);
      half[0] = static_cast<uint32_t>(word);
      half[1] = static_cast<uint32_t>(word >> 32);
    }
    xio_write_nbi(j.ctx, j.buffer + at, j.storage, j.first + at, size);
  });
  blame(j, xio_quiet(j.ctx));
}

__global__ void read_all(job j) {
  pieces(j,
         [&](uint64_t at, uint64_t size) { blame(j, xio_read(j.ctx, j.buffer + at, j.storage, j.first + at, size)); });
}

__global__ void quiet(job j, int* status) { *status = xio_quiet(j.ctx); }
__global__ void flush(job j) { blame(j, xio_storage_sync(j.ctx, j.storage)); }

struct drive {
  drive(const rig::team& t, const char* name, uint32_t queues) : world(t.world()) {
    xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
    attr.queues = queues;
    attr.depth = 64;
    MUST(xio_storage_open(world, name, &attr, &storage));
    MUST(xio_storage_size(world, storage, &bytes, &block));
  }
  ~drive() { MUST(xio_storage_close(world, storage)); }
  xio_world_t* world;
  xio_storage_t storage{};
  uint64_t bytes = 0;
  uint32_t block = 0;
};

// Checks what reads leave: the stamps of [first, first + bytes) and nothing beside them.
void look(const drive& d, const unsigned char* guarded, size_t shift, uint64_t first, uint64_t bytes, uint64_t outer,
          uint64_t inner) {
  const unsigned char* at = guarded + k_guard + shift;
  size_t beside = 0;
  for (size_t i = 0; i < k_guard + shift; ++i) beside += guarded[i] != 0xee;
  for (size_t i = 0; i < k_guard - shift; ++i) beside += at[bytes + i] != 0xee;
  rig::expect(beside == 0, "%zu bytes beside the data were written", beside);
  for (uint64_t i = first; i < first + bytes; i += 8) {
    uint64_t word;
    std::memcpy(&word, at + (i - first), 8);
    const bool middle = i >= d.bytes / 4 && i < d.bytes / 4 * 3;
    if (word == stamp_of(i, middle ? inner : outer)) continue;
    rig::expect(false, "byte %llu read as %016llx", static_cast<unsigned long long>(i),
                static_cast<unsigned long long>(word));
    return;
  }
}

void move(const rig::team& t, const char* name, uint64_t outer, uint64_t old_salt, uint64_t new_salt, uint32_t queues) {
  const drive d(t, name, queues);
  const uint64_t half = d.bytes / 2;
  auto* out = arena(t, 2 * (half + 2 * k_guard));
  auto* in = out + half + 2 * k_guard;
  const rig::device_array<int> wrong(1);
  const auto read_half = [&](uint64_t first, size_t shift, uint64_t inner) {
    std::memset(in, 0xee, half + 2 * k_guard);
    const job j{t.ctx, d.storage, in + k_guard + shift, first, half, d.block, 0, wrong.data()};
    RUN(read_all, 2, 32, j);
    look(d, in, shift, first, half, outer, inner);
  };
  // Pages that begin in the middle of a buffer, at words and at blocks.
  read_half(0, 516, old_salt);
  read_half(half, 512, old_salt);
  const job j{t.ctx, d.storage, out + k_guard + 2052, d.bytes / 4, half, d.block, new_salt, wrong.data()};
  RUN(write_all, 2, 32, j);
  RUN(flush, 1, 1, j);
  read_half(d.bytes / 4, 0, new_salt);
  rig::expect(wrong.get()[0] == 0, "%d ops failed", wrong.get()[0]);
  xio_engine_stats_t stats = XIO_ENGINE_STATS_INIT;
  MUST(xio_storage_stats(d.world, d.storage, &stats));
  std::printf("moved %s: %llu bytes, %llu commands, %llu doorbells\n", name,
              static_cast<unsigned long long>(stats.bytes), static_cast<unsigned long long>(stats.ops),
              static_cast<unsigned long long>(stats.doorbells));
}

// ---- two drives, and commands beside reading and writing --------------------------------------------------------

__global__ void one_op(job j, bool write) {
  blame(j, write ? xio_write(j.ctx, j.buffer, j.storage, j.first, j.bytes)
                 : xio_read(j.ctx, j.buffer, j.storage, j.first, j.bytes));
}

// The same memory has one address for both. The second is opened last and closed first.
void copy(const rig::team& t, const char* from, const char* to) {
  const drive source(t, from, 1);
  const uint64_t bytes = source.bytes / 4;
  auto* memory = arena(t, 2 * (bytes + 2 * k_guard));
  const rig::device_array<int> wrong(1);
  job j{t.ctx, source.storage, memory + k_guard + 4, 0, bytes, 0, 0, wrong.data()};
  {
    const drive target(t, to, 2);
    // Both carry the same stamps: away with those of the target first.
    std::memset(j.buffer, 0x5a, bytes);
    j.storage = target.storage;
    RUN(one_op, 1, 1, j, true);
    j.storage = source.storage;
    RUN(one_op, 1, 1, j, false);
    j.storage = target.storage;
    RUN(one_op, 1, 1, j, true);
    RUN(flush, 1, 1, j);
    j.buffer += bytes + 2 * k_guard;
    RUN(one_op, 1, 1, j, false);
    rig::expect(std::memcmp(j.buffer, memory + k_guard + 4, bytes) == 0, "%s holds something else than %s", to, from);
  }
  std::memset(j.buffer, 0xee, bytes);
  j.storage = source.storage;
  RUN(one_op, 1, 1, j, false);
  rig::expect(std::memcmp(j.buffer, memory + k_guard + 4, bytes) == 0, "%s reads differently once %s is closed", from,
              to);
  rig::expect(wrong.get()[0] == 0, "%d ops failed", wrong.get()[0]);
}

__global__ void compare(job j, int* status) { *status = xio_compare(j.ctx, j.buffer, j.storage, j.first, j.bytes); }
__global__ void zero(job j, int* status) { *status = xio_write_zeroes(j.ctx, j.storage, j.first, j.bytes); }

void zero_and_compare(const rig::team& t, const char* name) {
  const drive d(t, name, 1);
  // As much as one command may: what is longer is cut.
  const uint64_t bytes = d.bytes / 4;
  auto* memory = arena(t, 2 * bytes);
  auto* other = memory + bytes;
  const rig::device_array<int> wrong(1), status(1);
  job j{t.ctx, d.storage, memory, bytes, bytes, d.block, 0, wrong.data()};
  RUN(one_op, 1, 1, j, false);
  RUN(compare, 1, 1, j, status.data());
  rig::expect(status.get()[0] == XIO_OK, "a compare with what is there says %d", status.get()[0]);
  memory[bytes - 1] ^= 1;
  RUN(compare, 1, 1, j, status.data());
  rig::expect(status.get()[0] == XIO_ERR_STORAGE, "a compare with something else says %d", status.get()[0]);
  memory[bytes - 1] ^= 1;
  RUN(quiet, 1, 1, j, status.data());
  RUN(zero, 1, 1, j, status.data());
  rig::expect(status.get()[0] == XIO_OK, "writing zeroes says %d", status.get()[0]);
  j.buffer = other;
  std::memset(other, 0xee, bytes);
  RUN(one_op, 1, 1, j, false);
  uint64_t left = 0;
  for (uint64_t i = 0; i < bytes; ++i) left += other[i] != 0;
  rig::expect(left == 0, "%llu bytes are not zero", static_cast<unsigned long long>(left));
  j.buffer = memory;
  RUN(one_op, 1, 1, j, true);
  RUN(flush, 1, 1, j);
  rig::expect(wrong.get()[0] == 0, "%d ops failed", wrong.get()[0]);
}

// ---- errors of the medium -----------------------------------------------------------------------------------------

__global__ void each_its_block(job j, bool write, int* statuses) {
  const uint64_t at = uint64_t{threadIdx.x} * j.block;
  statuses[threadIdx.x] = write ? xio_write(j.ctx, j.buffer + at, j.storage, j.first + at, j.block)
                                : xio_read(j.ctx, j.buffer + at, j.storage, j.first + at, j.block);
}

// 64 lanes a block each, of which one is bad. NVM command set 1.0, figure 12: what the drive then says.
void fault(const rig::team& t, const char* name, uint64_t bad, bool write, uint32_t code) {
  const drive d(t, name, 1);
  constexpr int k_lanes = 64;
  const rig::device_array<int> statuses(k_lanes), last(1);
  auto* buffer = arena(t, k_lanes * d.block);
  const uint64_t lane = bad % k_lanes;
  job j{t.ctx, d.storage, buffer, (bad - lane) * d.block, 0, d.block, 0, nullptr};
  RUN(each_its_block, 1, k_lanes, j, write, statuses.data());
  const auto status_found = statuses.get();
  for (int i = 0; i < k_lanes; ++i)
    rig::expect(status_found[static_cast<size_t>(i)] == (static_cast<uint64_t>(i) == lane ? XIO_ERR_STORAGE : XIO_OK),
                "lane %d got %d, block %llu is bad", i, status_found[static_cast<size_t>(i)],
                static_cast<unsigned long long>(bad));
  xio_error_info_t info = XIO_ERROR_INFO_INIT;
  MUST(xio_ctx_error(t.world(), t.ctx, &info));
  rig::expect((info.vendor & 0x7ff) == code && std::strcmp(info.engine, "nvme") == 0,
              "the error is %s 0x%x and not nvme 0x%x", info.engine, info.vendor, code);
  RUN(quiet, 1, 1, j, last.data());
  rig::expect(last.get()[0] == XIO_ERR_STORAGE, "quiet says %d after a failed op", last.get()[0]);
  // The queue goes on.
  j.first = (bad - lane + k_lanes) * d.block;
  RUN(each_its_block, 1, k_lanes, j, write, statuses.data());
  for (const int status : statuses.get()) rig::expect(status == XIO_OK, "afterwards an op says %d", status);
  std::printf("fault %s: %s of block %llu failed with 0x%x\n", name, write ? "write" : "read",
              static_cast<unsigned long long>(bad), info.vendor);
}

// ---- closing with work under way ----------------------------------------------------------------------------------

__global__ void leave_reads(job j, uint32_t rounds) {
  for (uint32_t i = 0; i < rounds; ++i)
    xio_read_nbi(j.ctx, j.buffer + threadIdx.x * j.bytes, j.storage, threadIdx.x * j.bytes, j.bytes);
}

void leave(const rig::team& t, const char* name) {
  constexpr uint32_t k_lanes = 32;
  constexpr uint64_t k_each = 64 << 10;
  auto* memory = arena(t, k_lanes * k_each);
  // Again and again: where in its commands a drive is caught is luck.
  for (int round = 0; round < 5; ++round) {
    {
      const drive d(t, name, 1);
      const job j{t.ctx, d.storage, memory, 0, k_each, d.block, 0, nullptr};
      RUN(leave_reads, 1, k_lanes, j, 4u);
    }
    std::memset(memory, 0xa5, k_lanes * k_each);
    usleep(100000);
    size_t wrong = 0;
    for (size_t i = 0; i < k_lanes * k_each; ++i) wrong += memory[i] != 0xa5;
    rig::expect(wrong == 0, "%zu bytes were read after the drive was closed", wrong);
  }
}

// ---- media that cannot be written ---------------------------------------------------------------------------------

void sealed(const rig::team& t, const char* name) {
  const rig::device_array<int> statuses(1), wrong(1);
  auto* memory = arena(t, 4096);
  for (const bool said : {true, false}) {
    xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
    attr.flags = said ? XIO_STORAGE_READ_ONLY : 0;
    xio_storage_t storage{};
    MUST(xio_storage_open(t.world(), name, &attr, &storage));
    std::memset(memory, 0xee, 4096);
    const job j{t.ctx, storage, memory, 0, 4096, 4096, 0, wrong.data()};
    RUN(one_op, 1, 1, j, false);
    rig::expect(memory[0] == 's' && memory[4095] == 's', "%s reads as %02x", name, memory[0]);
    RUN(each_its_block, 1, 1, j, true, statuses.data());
    // A drive opened as read-only gets no write at all.
    const int status_found = statuses.get()[0];
    rig::expect(status_found == (said ? XIO_ERR_ARG : XIO_ERR_STORAGE), "a write says %d", status_found);
    xio_error_info_t info = XIO_ERROR_INFO_INIT;
    MUST(xio_ctx_error(t.world(), t.ctx, &info));
    if (!said) std::printf("sealed %s: a write failed with 0x%x\n", name, info.vendor);
    RUN(quiet, 1, 1, j, statuses.data());
    MUST(xio_storage_close(t.world(), storage));
  }
  rig::expect(wrong.get()[0] == 0, "%d reads failed", wrong.get()[0]);
}

// ---- drives that go away ------------------------------------------------------------------------------------------

__global__ void keep_reading(job j, int* status) {
  xio_status_t first = XIO_OK;
  for (int i = 0; i < 64 && first == XIO_OK; ++i) {
    const uint64_t at = (uint64_t{threadIdx.x} * 64 + static_cast<uint64_t>(i)) * j.block;
    first = xio_read(j.ctx, j.buffer + threadIdx.x * j.block, j.storage, at, j.block);
  }
  if (threadIdx.x == 0) *status = first;
}

void endless(const rig::team& t, const char* name) {
  using clock = std::chrono::steady_clock;
  constexpr auto k_patience = std::chrono::seconds(120);  // for the strike
  constexpr long k_slack_ms = 20000;                      // of a slow machine
  const char* text = std::getenv("XIO_TIMEOUT_MS");
  const long deadline = (text != nullptr ? std::atol(text) : 30000) + k_slack_ms;
  const rig::device_array<int> status(1);
  long took = 0;
  int status_found = XIO_OK;
  const auto since = [](clock::time_point from) {
    return static_cast<long>(std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - from).count());
  };
  clock::time_point closing;
  {
    const drive d(t, name, 1);
    const job j{t.ctx, d.storage, arena(t, 16 * d.block), 0, 0, d.block, 0, nullptr};
    const auto begin = clock::now();
    for (bool first = true; status_found == XIO_OK && clock::now() - begin < k_patience; first = false) {
      const auto from = clock::now();
      RUN(keep_reading, 1, 16, j, status.data());
      status_found = status.get()[0];
      took = since(from);
      if (first) std::printf("moving\n"), std::fflush(stdout);
    }
    rig::expect(status_found == XIO_ERR_TRANSPORT || status_found == XIO_ERR_TIMEOUT || status_found == XIO_ERR_STORAGE,
                "the drive ended with %s", xio_status_name(static_cast<xio_status_t>(status_found)));
    rig::expect(took <= deadline, "that took %ld ms, the deadline is %ld", took, deadline);
    const auto from = clock::now();
    RUN(keep_reading, 1, 16, j, status.data());
    rig::expect(status.get()[0] != XIO_OK, "an op on a lost drive succeeded");
    rig::expect(since(from) <= deadline, "an op on a lost drive took %ld ms", since(from));
    closing = clock::now();
  }
  rig::expect(since(closing) <= 2 * deadline, "closing took %ld ms", since(closing));
  std::printf("lost %s: %s after %ld ms, closed in %ld ms\n", name,
              xio_status_name(static_cast<xio_status_t>(status_found)), took, since(closing));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc > 2 ? argv[1] : "";
  if (verb == "stamp" && argc == 4) return nvme_disk::stamp(argv[2], number(argv[3]));
  if (verb == "verify" && argc == 5) return nvme_disk::verify(argv[2], number(argv[3]), number(argv[4]));
  // A drive that is gone may make the end of its ctx an error.
  auto& t = *new rig::team();
  if (verb == "refused") {
    for (int i = 2; i < argc; ++i) expect_refusal(t.world(), argv[i], nullptr, "");
  } else if (verb == "asked") {
    asked(t.world(), argv[2]);
  } else if (verb == "move" && argc == 7) {
    move(t, argv[2], number(argv[3]), number(argv[4]), number(argv[5]), static_cast<uint32_t>(number(argv[6])));
  } else if (verb == "copy" && argc == 4) {
    copy(t, argv[2], argv[3]);
  } else if (verb == "zero") {
    zero_and_compare(t, argv[2]);
  } else if (verb == "faults" && argc == 5) {
    fault(t, argv[2], number(argv[3]), false, 0x281);
    fault(t, argv[2], number(argv[4]), true, 0x280);
  } else if (verb == "leave") {
    leave(t, argv[2]);
  } else if (verb == "sealed") {
    sealed(t, argv[2]);
  } else if (verb == "endless") {
    endless(t, argv[2]);
  } else {
    rig::give_up("nvme_drive", "wrong arguments");
  }
  const int verdict = rig::verdict("nvme_drive", t, false);
  if (verb != "endless") delete &t;
  return verdict;
}
