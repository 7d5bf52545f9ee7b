// SPDX-License-Identifier: MIT
// Storage through the public API: several files in stripes, every op in every form, against a copy in memory and the
// files themselves, which are put together here by the definition of stripes and not by what the library computes.
//   storage DIRECTORY      a writable one; what it makes there is removed. Several PEs share one file
// storage.sh runs it with every way to ring doorbells and to name data.
#include <random>

#include "storage_shared.hpp"

namespace {

enum job_op { op_read, op_write, op_compare, op_zero };

struct job {
  int op;
  uint32_t queue_later;  // 1: the _nbi form, waited for at the end; 2: never waited for, quiet has to do
  uint64_t buffer;       // offset in the heap block
  uint64_t offset, bytes;
};

struct result {
  xio_status_t status;
  uint32_t code;
};

// The job's op in one of its forms: of one thread, _nbi, _wg or _nbi_wave.
#define DO_JOB(form, ctx, s, memory, j)                                                   \
  (j.op == op_read      ? xio_read##form(ctx, memory + j.buffer, s, j.offset, j.bytes)    \
   : j.op == op_write   ? xio_write##form(ctx, memory + j.buffer, s, j.offset, j.bytes)   \
   : j.op == op_compare ? xio_compare##form(ctx, memory + j.buffer, s, j.offset, j.bytes) \
                        : xio_write_zeroes##form(ctx, s, j.offset, j.bytes))

// A job for each thread.
__global__ void jobs_of_threads(xio_ctx_t ctx, xio_storage_t s, unsigned char* memory, const job* jobs, uint32_t count,
                                result* results) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const job j = jobs[i];
  if (j.queue_later == 0) {
    results[i] = result{DO_JOB(, ctx, s, memory, j), 0};
    return;
  }
  const xio_req_t r = DO_JOB(_nbi, ctx, s, memory, j);
  if (j.queue_later == 2) {
    results[i] = result{XIO_OK, 0};
    return;
  }
  const xio_status_t status = xio_wait(ctx, r);
  results[i] = result{status, xio_storage_code(ctx, r)};
}

// A job for each workgroup, and the next one for its first wave.
__global__ void jobs_of_groups(xio_ctx_t ctx, xio_storage_t s, unsigned char* memory, const job* jobs,
                               result* results) {
  const job all = jobs[2 * blockIdx.x];
  xio_status_t status = DO_JOB(_wg, ctx, s, memory, all);
  if (threadIdx.x == 0) results[2 * blockIdx.x] = result{status, 0};
  if (static_cast<int>(threadIdx.x) < warpSize) {
    const job mine = jobs[2 * blockIdx.x + 1];
    status = xio_wait(ctx, DO_JOB(_nbi_wave, ctx, s, memory, mine));
    if (threadIdx.x == 0) results[2 * blockIdx.x + 1] = result{status, 0};
  }
  __syncthreads();
}

__global__ void end_all(xio_ctx_t ctx, xio_storage_t s, result* out) {
  out[0] = result{xio_quiet(ctx), 0};
  out[1] = result{xio_storage_sync(ctx, s), 0};
}

// One wave, one block of 4 KiB a lane, `rounds` times: all lanes post in step.
__global__ void in_step(xio_ctx_t ctx, xio_storage_t s, unsigned char* memory, uint32_t rounds, uint64_t blocks,
                        uint32_t* wrong) {
  for (uint32_t i = 0; i < rounds; ++i) {
    const uint64_t at = (i * 64 + threadIdx.x) % blocks * 4096;
    if (xio_read(ctx, memory + threadIdx.x * 4096, s, at, 4096) != XIO_OK) *wrong = 1;
    __syncthreads();
  }
}

// Reads that nobody waits for: more than the queue holds.
__global__ void leave_reads(xio_ctx_t ctx, xio_storage_t s, unsigned char* memory, uint64_t bytes, uint32_t rounds) {
  for (uint32_t i = 0; i < rounds; ++i)
    xio_read_nbi(ctx, memory + threadIdx.x * bytes, s, (i * blockDim.x + threadIdx.x) * bytes, bytes);
}

// A comparison that finds a difference.
__global__ void fail_once(xio_ctx_t ctx, xio_storage_t s, unsigned char* memory, int* status) {
  *status = xio_wait(ctx, xio_compare_nbi(ctx, memory, s, 0, 512));
}

constexpr size_t k_memory = 24u << 20;

class bench {
 public:
  bench(rig::team& t, const std::string& directory, int members, uint64_t stripe, uint64_t bytes, uint32_t queues,
        uint32_t depth)
      : team_(t), members_(members), stripe_(members == 1 ? bytes : stripe) {
    std::string names;
    for (int m = 0; m < members; ++m) {
      paths_.push_back(directory + "/xio_storage_" + std::to_string(getpid()) + "_" + std::to_string(m));
      names += (m == 0 ? "file:" : ",file:") + paths_.back();
    }
    xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
    attr.flags = XIO_STORAGE_CREATE | XIO_STORAGE_TRUNCATE;
    attr.queues = queues;
    attr.depth = depth;
    attr.bytes = bytes;
    attr.stripe_bytes = members == 1 ? 0 : stripe;
    MUST(xio_storage_open(t.world(), names.c_str(), &attr, &storage));
    uint64_t got = 0;
    MUST(xio_storage_size(t.world(), storage, &got, nullptr));
    rig::expect(got == bytes, "%d members: %llu bytes, expected %llu", members, rig::ull(got), rig::ull(bytes));
    wanted.assign(bytes, 0);
  }
  ~bench() {
    MUST(xio_storage_close(team_.world(), storage));
    for (const auto& p : paths_) unlink(p.c_str());
  }
  bench& operator=(bench&&) = delete;

  // Returns the bytes of the files, each at the place that the definition gives it.
  std::vector<unsigned char> held() const {
    std::vector<std::vector<unsigned char>> files;
    for (const auto& p : paths_) {
      std::ifstream in(p, std::ios::binary);
      files.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
    std::vector<unsigned char> out(wanted.size(), rig::k_poison);
    for (uint64_t s = 0; s * stripe_ < out.size(); ++s) {
      const auto& f = files[s % files.size()];
      const uint64_t from = s / files.size() * stripe_;
      const uint64_t n = std::min<uint64_t>(stripe_, out.size() - s * stripe_);
      if (from + n <= f.size())
        std::copy_n(f.begin() + static_cast<long>(from), n, out.begin() + static_cast<long>(s * stripe_));
    }
    return out;
  }
  int members() const { return members_; }

  xio_storage_t storage{};
  std::vector<unsigned char> wanted;

 private:
  rig::team& team_;
  int members_;
  uint64_t stripe_;
  std::vector<std::string> paths_;
};

class trial {
 public:
  trial(rig::team& t, unsigned char* memory) : team_(t), memory_(memory), host_(k_memory) {}

  // Fills memory with what depends on place and round, so that nothing old passes for new.
  void fill(uint32_t round) {
    for (size_t i = 0; i < host_.size(); ++i) host_[i] = rig::pattern(static_cast<int>(round), i);
    rig::team::write(memory_, host_);
  }

  // Runs the jobs and checks statuses, memory (guards too), and if `look`, the files. Compares of these jobs succeed.
  void run(bench& b, const std::vector<job>& jobs, bool groups, bool look, const char* what) {
    rig::device_array<job> table(jobs);
    rig::device_array<result> results(jobs.size());
    if (groups)
      RUN(jobs_of_groups, static_cast<unsigned>(jobs.size() / 2), 128, team_.ctx, b.storage, memory_, table.data(),
          results.data());
    else
      RUN(jobs_of_threads, static_cast<unsigned>((jobs.size() + 95) / 96), 96, team_.ctx, b.storage, memory_,
          table.data(), static_cast<uint32_t>(jobs.size()), results.data());
    const auto got = results.get();
    for (size_t i = 0; i < jobs.size(); ++i) rig::expect_status(got[i].status, XIO_OK, what);
    finish(b, what);
    for (const job& j : jobs) {
      const auto at = b.wanted.begin() + static_cast<long>(j.offset);
      if (j.op == op_write) std::copy_n(host_.begin() + static_cast<long>(j.buffer), j.bytes, at);
      if (j.op == op_zero) std::fill_n(at, j.bytes, static_cast<unsigned char>(0));
      if (j.op == op_read) std::copy_n(at, j.bytes, host_.begin() + static_cast<long>(j.buffer));
    }
    rig::expect_same(rig::team::read(memory_, k_memory), host_, what);
    if (look) rig::expect_same(b.held(), b.wanted, what);
  }

  void finish(bench& b, const char* what) {
    rig::device_array<result> out(2);
    RUN(end_all, 1, 1, team_.ctx, b.storage, out.data());
    rig::expect_status(out.get()[0].status, XIO_OK, what);
    rig::expect_status(out.get()[1].status, XIO_OK, what);
  }

  result one(bench& b, const job& j) {
    rig::device_array<job> table(std::vector<job>{j});
    rig::device_array<result> out(1);
    RUN(jobs_of_threads, 1, 1, team_.ctx, b.storage, memory_, table.data(), 1u, out.data());
    return out.get()[0];
  }

  // The error of ops on purpose, so that the next quiet is about the next ops.
  void take_errors(bench& b) {
    rig::device_array<result> out(2);
    RUN(end_all, 1, 1, team_.ctx, b.storage, out.data());
  }

 private:
  rig::team& team_;
  unsigned char* memory_;
  std::vector<unsigned char> host_;
};

// `count` jobs in places of their own, of any length up to `most`, half of them of whole blocks; buffers at any byte.
std::vector<job> random_jobs(std::mt19937& random, const bench& b, size_t count, uint64_t most, bool reads_only) {
  std::vector<job> jobs;
  const uint64_t room = b.wanted.size() / count / 512 * 512;
  const uint64_t memory_room = k_memory / count / 512 * 512;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t longest = std::min({room, memory_room - 512, most}), grain = random() % 2 == 0 ? 512 : 1;
    const uint64_t bytes = (1 + random() % (longest / grain)) * grain;
    const uint64_t offset = i * room + random() % ((room - bytes) / grain + 1) * grain;
    const uint64_t buffer = i * memory_room + random() % 512;
    const int op = reads_only ? op_read : random() % 8 == 0 ? op_zero : static_cast<int>(random() % 2);
    jobs.push_back(job{op, static_cast<uint32_t>(random() % 3), buffer, offset, bytes});
  }
  return jobs;
}

void stripes(rig::team& t, unsigned char* memory, const std::string& directory) {
  struct shape {
    int members;
    uint64_t stripe, bytes;
    uint32_t queues, depth;
  };
  const shape shapes[] = {{1, 0, (8u << 20) - 351, 2, 16},
                          {2, 512, 1u << 20, 1, 16},
                          {3, 4096, 3u * 4096 * 150, 2, 32},
                          {8, 65536, 8u << 20, 1, 64}};
  std::mt19937 random(20);
  uint32_t round = 0;
  for (const shape& s : shapes) {
    bench b(t, directory, s.members, s.stripe, s.bytes, s.queues, s.depth);
    trial one(t, memory);
    for (const size_t count : {96u, 5u}) {
      one.fill(++round);
      one.run(b, random_jobs(random, b, count, s.bytes, false), false, true, "threads");
      one.fill(++round);
      one.run(b, random_jobs(random, b, count, s.bytes, true), false, false, "threads that read");
    }
    one.fill(++round);
    one.run(b, random_jobs(random, b, 6, s.bytes, false), true, true, "workgroups and waves");
  }
}

// Longer than one list of PRPs can name, at an offset that makes one page more of it.
void long_transfers(rig::team& t, unsigned char* memory, const std::string& directory) {
  bench b(t, directory, 1, 0, 20u << 20, 1, 4);
  trial one(t, memory);
  const uint64_t bytes = (8u << 20) + 512;
  one.fill(1000);
  one.run(b, {{op_write, 0, 4, 512, bytes}, {op_write, 1, 12u << 20, 10u << 20, 8u << 20}}, false, true, "long write");
  one.fill(1001);
  one.run(b, {{op_read, 0, 4092, 512, bytes}, {op_read, 1, (12u << 20) + 2048, 10u << 20, 8u << 20}}, false, false,
          "long read");
}

void compares(rig::team& t, unsigned char* memory, const std::string& directory) {
  bench b(t, directory, 2, 4096, 1u << 20, 1, 16);
  trial one(t, memory);
  one.fill(2000);
  // Three stripes, and the same compared in the same place and one block off.
  one.run(b, {{op_write, 0, 0, 0, 12288}}, false, true, "compare: write");
  one.run(b, {{op_compare, 0, 0, 0, 12288}, {op_compare, 1, 512, 512, 4096}, {op_compare, 2, 4096, 4096, 512}}, false,
          true, "compare: equal");
  for (const uint64_t at : {uint64_t{0}, uint64_t{4096}, uint64_t{11776}}) {
    const result r = one.one(b, {op_compare, 1, at + 512, at, 512});
    rig::expect_status(r.status, XIO_ERR_STORAGE, "compare: different");
    rig::expect(r.code == 0x285, "compare: code %#x, expected 0x285", r.code);
    one.take_errors(b);
  }
  // Over several stripes some parts are over before there is a request: it has their code all the same.
  rig::expect_status(one.one(b, {op_compare, 0, 512, 0, 12288}).status, XIO_ERR_STORAGE, "compare: different stripes");
  one.take_errors(b);
  const result r = one.one(b, {op_compare, 1, 512, 0, 12288});
  rig::expect_status(r.status, XIO_ERR_STORAGE, "compare: different stripes, _nbi");
  rig::expect(r.code == 0x285, "compare of stripes: code %#x, expected 0x285", r.code);
  one.take_errors(b);
}

void refusals(rig::team& t, unsigned char* memory, const std::string& directory) {
  bench b(t, directory, 2, 4096, 64u << 10, 1, 16);
  trial one(t, memory);
  const uint64_t end = 64u << 10;
  const job wrong[] = {{op_write, 1, 0, end, 512},
                       {op_zero, 1, 0, end - 512, 1024},
                       {op_read, 0, 0, end - 1, 2},
                       {op_write, 0, 0, ~uint64_t{0} - 511, 512}};
  for (const job& j : wrong) {
    rig::expect_status(one.one(b, j).status, XIO_ERR_ARG, "a wrong place");
    one.take_errors(b);
  }
  // Nothing to do is done.
  rig::expect_status(one.one(b, {op_zero, 1, 0, end, 0}).status, XIO_OK, "zero bytes");
  rig::expect_same(b.held(), b.wanted, "after refusals");

  const auto refused = [&](const std::string& names, uint64_t stripe, uint32_t queues, const char* part) {
    xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
    attr.flags = XIO_STORAGE_CREATE;
    attr.bytes = 1u << 20;
    attr.stripe_bytes = stripe;
    attr.queues = queues;
    xio_storage_t s{};
    rig::expect(xio_storage_open(t.world(), names.c_str(), &attr, &s) != XIO_OK, "%s was opened", names.c_str());
    rig::expect(std::strstr(xio_last_error(), part) != nullptr, "\"%s\" does not say \"%s\"", xio_last_error(), part);
  };
  const std::string a = "file:" + directory + "/xio_storage_refused_a",
                    c = "file:" + directory + "/xio_storage_refused_c";
  refused(a + "," + a, 0, 1, "named twice");
  refused(a + ",file:" + directory + "/./xio_storage_refused_a?block=512", 0, 1, "named twice");
  refused(a + "," + c, 3000, 1, "power of two");
  refused(a + "," + c, 256, 1, "512 at least");
  refused(a + "," + c, 0, 33, "at most 64");
  refused(a + ",file:", 0, 1, "no path after file:");
  std::string many = a;
  for (int i = 0; i < 8; ++i) many += "," + c + std::to_string(i);
  refused(many, 0, 1, "at most 8");
  unlink((directory + "/xio_storage_refused_a").c_str());
  unlink((directory + "/xio_storage_refused_c").c_str());
}

// The smallest member says how many whole stripes there are; bytes behind them in any file stay as they were.
void unequal(rig::team& t, unsigned char* memory, const std::string& directory) {
  constexpr uint64_t stripe = 64u << 10, usable = 2 * 3 * stripe;
  const std::string paths[] = {directory + "/xio_storage_long", directory + "/xio_storage_short"};
  const uint64_t sizes[] = {300u << 10, 200u << 10};
  std::string names;
  for (int m = 0; m < 2; ++m) {
    std::ofstream(paths[m], std::ios::binary) << std::string(sizes[m], '\xee');
    names += (m == 0 ? "file:" : ",file:") + paths[m] + "?block=512";
  }
  xio_storage_t s{};
  MUST(xio_storage_open(t.world(), names.c_str(), nullptr, &s));
  uint64_t bytes = 0;
  MUST(xio_storage_size(t.world(), s, &bytes, nullptr));
  rig::expect(bytes == usable, "unequal: %llu bytes, expected %llu", rig::ull(bytes), rig::ull(usable));
  std::vector<unsigned char> data(k_memory);
  for (size_t i = 0; i < data.size(); ++i) data[i] = rig::pattern(4000, i);
  rig::team::write(memory, data);
  const auto one = [&](const job& j) {
    rig::device_array<job> table(std::vector<job>{j});
    rig::device_array<result> out(1);
    RUN(jobs_of_threads, 1, 1, t.ctx, s, memory, table.data(), 1u, out.data());
    return out.get()[0].status;
  };
  rig::expect_status(one({op_write, 0, 0, 0, usable}), XIO_OK, "unequal: all of it");
  rig::expect_status(one({op_write, 0, 0, usable, 512}), XIO_ERR_ARG, "unequal: past the end");
  rig::expect_status(one({op_zero, 0, 0, usable - 512, 1024}), XIO_ERR_ARG, "unequal: over the end");
  rig::device_array<result> taken(2);
  RUN(end_all, 1, 1, t.ctx, s, taken.data());
  MUST(xio_storage_close(t.world(), s));
  for (uint64_t m = 0; m < 2; ++m) {
    std::vector<unsigned char> wanted(sizes[m], 0xee);
    for (uint64_t i = 0; i < 3; ++i)
      std::copy_n(data.begin() + static_cast<long>((2 * i + m) * stripe), stripe,
                  wanted.begin() + static_cast<long>(i * stripe));
    std::ifstream in(paths[m], std::ios::binary);
    rig::expect_same({std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()}, wanted, "unequal: a file");
    unlink(paths[m].c_str());
  }
}

// A handle that has outlived its storage does nothing to the one that has its place now.
void outlived(rig::team& t, unsigned char* memory, const std::string& directory) {
  xio_storage_t old{};
  trial one(t, memory);
  one.fill(3000);
  {
    bench first(t, directory, 1, 0, 64u << 10, 1, 16);
    one.run(first, {{op_write, 0, 0, 0, 4096}}, false, true, "before it closes");
    old = first.storage;
  }
  bench b(t, directory, 1, 0, 64u << 10, 1, 16);
  const xio_storage_t now = b.storage;
  rig::expect(now.view == old.view, "the place was not taken again");
  b.storage = old;
  for (const int op : {op_read, op_write, op_compare, op_zero}) {
    rig::expect_status(one.one(b, {op, 0, 0, 0, 4096}).status, XIO_ERR_STATE, "a closed handle");
    rig::expect_status(one.one(b, {op, 1, 0, 0, 4096}).status, XIO_ERR_STATE, "a closed handle, _nbi");
  }
  b.storage = now;
  one.take_errors(b);
  rig::expect_same(b.held(), b.wanted, "after a closed handle");
  one.run(b, {{op_write, 0, 0, 0, 4096}}, false, true, "in its place");
}

// A failure on a storage does not reach a ctx that posted to another one, which had its place before.
void taken_over(rig::team& t, unsigned char* memory, const std::string& directory) {
  trial one(t, memory);
  one.fill(4000);
  {
    bench first(t, directory, 1, 0, 64u << 10, 1, 16);
    one.run(first, {{op_write, 0, 0, 0, 4096}}, false, true, "before its place is taken over");
  }
  bench second(t, directory, 1, 0, 64u << 10, 1, 16);
  rig::team::write(memory, std::vector<unsigned char>(512, 1));
  xio_ctx_t other{};
  MUST(xio_ctx_create(t.world(), nullptr, &other));
  rig::expect_status(rig::result_of(fail_once, 1, 1, other, second.storage, memory), XIO_ERR_STORAGE,
                     "another ctx's comparison");
  rig::expect_status(rig::error_of(t.world(), other).status, XIO_ERR_STORAGE, "the ctx that compared");
  const xio_error_info_t info = rig::error_of(t);
  rig::expect(std::strcmp(info.engine, "nvme") != 0, "the ctx that used what was there before reads \"%s\"",
              info.sentence);
  rig::expect_quiet(t.ctx, XIO_OK, "its quiet");
  MUST(xio_ctx_destroy(t.world(), other));
}

// Measures the cost of doorbells: 64 lanes in step on a queue of 64.
void doorbells(rig::team& t, unsigned char* memory, const std::string& directory) {
  bench b(t, directory, 1, 0, 4u << 20, 1, 64);
  rig::device_array<uint32_t> wrong(1);
  RUN(in_step, 1, 64, t.ctx, b.storage, memory, 100u, (4u << 20) / 4096, wrong.data());
  rig::expect(wrong.get()[0] == 0, "a read in step failed");
  xio_engine_stats_t s = XIO_ENGINE_STATS_INIT;
  MUST(xio_storage_stats(t.world(), b.storage, &s));
  rig::expect(s.ops == 6400, "%llu ops, expected 6400", rig::ull(s.ops));
  rig::expect(s.doorbells * 16 <= s.ops, "%llu doorbells for %llu commands, expected a sixteenth at most",
              rig::ull(s.doorbells), rig::ull(s.ops));
  std::printf("doorbells per command: %.4f\n", static_cast<double>(s.doorbells) / static_cast<double>(s.ops));
}

// Closed with its queues full: the memory is nobody's but ours at once, and the drive does not miss it (storage.sh
// looks for the drive's own words).
void closed_with_work(rig::team& t, unsigned char* memory, const std::string& directory) {
  {
    bench b(t, directory, 2, 256u << 10, 128u << 20, 2, 64);
    RUN(leave_reads, 1, 64, t.ctx, b.storage, memory, uint64_t{256u << 10}, 8u);
  }
  const std::vector<unsigned char> ours(k_memory, 0xa5);
  rig::team::write(memory, ours);
  usleep(20000);
  rig::expect_same(rig::team::read(memory, k_memory), ours, "after closing with work under way");
  const xio_error_info_t info = rig::error_of(t);
  rig::expect(std::strcmp(info.engine, "nvme") != 0, "the ctx after closing with work under way reads \"%s\"",
              info.sentence);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: storage DIRECTORY\n");
    return 2;
  }
  rig::team t({.heap_bytes = 32u << 20});
  auto* memory = t.symmetric<unsigned char>(k_memory);
  if (t.n > 1) {
    shared(t, memory, argv[1]);
    return rig::verdict("storage", t, false);
  }
  stripes(t, memory, argv[1]);
  long_transfers(t, memory, argv[1]);
  compares(t, memory, argv[1]);
  refusals(t, memory, argv[1]);
  unequal(t, memory, argv[1]);
  outlived(t, memory, argv[1]);
  taken_over(t, memory, argv[1]);
  doorbells(t, memory, argv[1]);
  closed_with_work(t, memory, argv[1]);
  return rig::verdict("storage", t, false);
}
