// SPDX-License-Identifier: MIT
// nvme-ep: writes, then reads, of a drive or of a file behind a software controller.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <random>

#include "base/error.hpp"
#include "ctx/stripes.hpp"
#include "memory/owner.hpp"
#include "tools/command_line.hpp"
#include "tools/size_text.hpp"
#include "tools/xio-tester/nvme_kernels.hpp"
#include "tools/xio-tester/nvme_target.hpp"
#include "tools/xio-tester/run.hpp"
#include "tools/xio-tester/world.hpp"

namespace xio::tester {
namespace {

constexpr std::uint32_t k_threads_max = 256;
constexpr std::uint32_t k_lbas_max = 65536;  // of one command, which counts from 0 in 16 bits
constexpr std::int64_t k_ops_max = std::int64_t{1} << 40;

std::uint64_t folded(std::int64_t count) {
  return count < 0 ? 0 - static_cast<std::uint64_t>(count) : static_cast<std::uint64_t>(count);
}

// Where each op may go.
struct extent {
  std::uint64_t bytes = 0;
  std::uint32_t block_bytes = 0;

  std::uint64_t blocks() const { return bytes / block_bytes; }
  std::uint64_t places(const nvme_settings& s) const {
    return blocks() <= s.base_lba ? 0 : (blocks() - s.base_lba) / s.lbas_per_io;
  }
};

void check_extent(const extent& e, const nvme_settings& s) {
  if (e.places(s) == 0)
    fail(XIO_ERR_ARG, "{} blocks from LBA {} on leave the {} blocks of {}; lower --base-lba or --lbas-per-io",
         s.lbas_per_io, s.base_lba, e.blocks(), s.controller);
  if (std::uint64_t{s.lbas_per_io} * e.block_bytes > s.buffer_bytes)
    fail(XIO_ERR_ARG, "an op of {} blocks of {} bytes does not fit --data-buffer-size {}", s.lbas_per_io, e.block_bytes,
         tools::text_of_size(s.buffer_bytes));
  if (s.batch > s.buffer_bytes / (std::uint64_t{s.lbas_per_io} * e.block_bytes))
    fail(XIO_ERR_ARG, "--batch-size {} with {} bytes an op wants {} bytes of buffer, and --data-buffer-size is {}",
         s.batch, s.lbas_per_io * e.block_bytes, s.batch * s.lbas_per_io * e.block_bytes,
         tools::text_of_size(s.buffer_bytes));
}

xio_storage_attr_t attr_of(const nvme_target& t, const nvme_settings& s) {
  xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
  attr.queues = s.queues;
  attr.depth = s.queue_length;
  if (s.writes == 0) attr.flags |= XIO_STORAGE_READ_ONLY;
  if (!t.is_file) return attr;
  attr.block_bytes = s.block_bytes;
  if (s.writes != 0 && t.is_disk) attr.flags |= XIO_STORAGE_CREATE;  // --i-know was said
  if (s.writes != 0 && t.bytes == 0) {
    attr.flags |= XIO_STORAGE_CREATE;
    attr.bytes = s.file_bytes;
  } else if (s.writes != 0 && t.bytes < s.block_bytes) {
    attr.bytes = s.block_bytes;  // the least that one op writes
  }
  return attr;
}

// Returns the extent that a file will have once it is opened so.
extent extent_of(const nvme_target& file, const xio_storage_attr_t& attr) {
  const xio_storage_attr_t wanted = nvme::with_name(file.said, attr);
  return {std::max(file.bytes, wanted.bytes), wanted.block_bytes};
}

// The same of stripes over files, put together as the library does it. Throws what does not fit together.
extent extent_of(const std::vector<nvme_target>& files, const xio_storage_attr_t& attr) {
  const xio_storage_attr_t share = member_attr(attr, static_cast<std::uint32_t>(files.size()));
  std::vector<std::string> names;
  std::vector<dev::storage_view> views;
  for (const nvme_target& file : files) {
    const extent one = extent_of(file, share);
    names.push_back(file.name);
    views.emplace_back();
    views.back().bytes = one.bytes;
    views.back().block_bytes = one.block_bytes;
  }
  const dev::storage_view whole = stripe(names, views, attr);
  return {whole.bytes, whole.block_bytes};
}

class opened_storage {
 public:
  opened_storage(const world& w, const nvme_target& t, const nvme_settings& s) : world_(w) {
    const xio_storage_attr_t attr = attr_of(t, s);
    must(xio_storage_open(w.get(), t.name.c_str(), &attr, &handle_));
    try {
      must(xio_storage_size(w.get(), handle_, &extent_.bytes, &extent_.block_bytes));
    } catch (...) {
      xio_storage_close(w.get(), handle_);
      throw;
    }
  }
  ~opened_storage() { xio_storage_close(world_.get(), handle_); }
  opened_storage& operator=(opened_storage&&) = delete;

  xio_storage_t handle() const { return handle_; }
  const extent& size() const { return extent_; }
  xio_engine_stats_t stats() const {
    xio_engine_stats_t stats = XIO_ENGINE_STATS_INIT;
    must(xio_storage_stats(world_.get(), handle_, &stats));
    return stats;
  }

 private:
  const world& world_;
  xio_storage_t handle_{};
  extent extent_;
};

world_settings settings_with(const world_options& options) {
  world_settings s;
  s.options = options;
  return s;
}

// The buffers of all queues. On the host platform they are mapped from a file, by which the kernel module pins them.
class data_memory {
 public:
  data_memory(std::size_t bytes, gpu::place where) {
    if (gpu::has_device_memory())
      buffer_ = gpu::buffer(bytes, where, 4096);
    else
      block_ = memory::owner(XIO_MEM_DEVICE_VMEM, bytes, 4096, "xio-tester");
  }
  void* data() const { return block_.data() != nullptr ? block_.data() : buffer_.data(); }
  std::size_t size() const { return block_.data() != nullptr ? block_.size() : buffer_.size(); }

 private:
  gpu::buffer buffer_;
  memory::owner block_;
};

// A run that checks its writes has a pattern that no run before it had: what an earlier one wrote is not taken for its
// own.
u64 seed_of(const nvme_settings& s) {
  if (s.seed) return static_cast<u64>(*s.seed);
  return s.verify && !s.written ? std::random_device()() : 0;
}

// Both phases of a test.
class nvme_test {
 public:
  nvme_test(const shared_settings& shared, const nvme_settings& s, const nvme_target& target,
            const world_options& options)
      : shared_(shared),
        s_(s),
        seed_(seed_of(s)),
        world_(settings_with(options)),
        storage_(world_, target, s),
        buffer_(s.queues * s.buffer_bytes, place_of_data(shared)),
        registration_(world_, buffer_.data(), buffer_.size()) {
    check_extent(storage_.size(), s);
    std::printf("nvme-ep: %s, %llu blocks of %u bytes, %u queue%s of %u entries, %s%s\n", target.name.c_str(),
                static_cast<unsigned long long>(storage_.size().blocks()), storage_.size().block_bytes, s.queues,
                s.queues == 1 ? "" : "s", s.queue_length, backend_text("storage").c_str(),
                s.verify && !s.seed ? fmt::format(", seed {}", seed_).c_str() : "");
  }

  bool phase(bool write) {
    const std::uint64_t ops = s_.infinite ? 0 : folded(write ? s_.writes : s_.reads);
    const std::uint64_t bytes = std::uint64_t{s_.lbas_per_io} * storage_.size().block_bytes;
    const std::uint64_t slots = s_.buffer_bytes / bytes;
    const std::uint64_t batch = s_.batch != 0 ? s_.batch : ops == 0 ? slots : std::min(ops, slots);
    const auto threads = static_cast<std::uint32_t>(std::min<std::uint64_t>(batch, k_threads_max));
    const bool verify = s_.verify && !write;
    const gpu::buffer posted(s_.queues * batch * sizeof(xio_req_t), gpu::place::device);
    const gpu::buffer begun(s_.queues * batch * sizeof(u64), gpu::place::device);
    run r(shared_, {write ? "nvme-ep write" : "nvme-ep read", std::uint64_t{s_.queues} * threads, ops * s_.queues,
                    bytes, backend_text("storage")});
    nvme_job job{};
    job.ctx = world_.ctx();
    job.storage = storage_.handle();
    job.tally = r.view();
    job.buffer = static_cast<u8*>(buffer_.data());
    job.posted = posted.as<xio_req_t>();
    job.begun = begun.as<u64>();
    job.buffer_bytes = s_.buffer_bytes;
    job.ops = ops;
    job.batch = batch;
    job.base_lba = s_.base_lba;
    job.places = storage_.size().places(s_);
    job.seed = seed_;
    job.lbas_per_io = s_.lbas_per_io;
    job.block_bytes = storage_.size().block_bytes;
    job.random = s_.access == "random" ? 1 : 0;
    job.write = write ? 1 : 0;
    job.verify = verify ? 1 : 0;
    const xio_engine_stats_t before = storage_.stats();
    r.start([&] { return launch_nvme(job, s_.queues, threads); });
    // Later ops write what those before them wrote in the same place, and what is not read proves nothing.
    if (verify) r.proves(std::min(r.done(), job.places), std::max(r.done(), folded(s_.writes) * s_.queues));
    const bool right = r.print(verify);
    if (shared_.verbose) print_doorbells(before);
    return right;
  }

 private:
  void print_doorbells(const xio_engine_stats_t& before) const {
    const xio_engine_stats_t after = storage_.stats();
    const std::uint64_t ops = after.ops - before.ops, doorbells = after.doorbells - before.doorbells;
    std::printf("  %llu commands, %llu submission doorbells (%.4f each)\n", static_cast<unsigned long long>(ops),
                static_cast<unsigned long long>(doorbells),
                ops == 0 ? 0.0 : static_cast<double>(doorbells) / static_cast<double>(ops));
  }

  const shared_settings& shared_;
  const nvme_settings& s_;
  const u64 seed_;
  world world_;
  opened_storage storage_;
  data_memory buffer_;
  registered_memory registration_;
};

void note(const std::string& sentence) { std::fprintf(stderr, "xio-tester: note: %s\n", sentence.c_str()); }

void note_idle_sizes(const nvme_target& t, const nvme_settings& s) {
  if (s.file_bytes != nvme_settings().file_bytes && (!t.is_file || t.bytes != 0))
    note("--file-size has no effect: it is for a file that is made");
  if (s.block_bytes != nvme_settings().block_bytes && !t.is_file)
    note("--file-block-size has no effect: a drive has blocks of its own");
}

std::string wrong_numbers(const nvme_settings& s) {
  if (s.access != "random" && s.access != "sequential")
    return fmt::format("--access-pattern '{}' is not known; give random or sequential", s.access);
  if (s.queue_length < 4 || s.queue_length > 4096 || !std::has_single_bit(s.queue_length))
    return fmt::format("--queue-length {} cannot be; give a power of two from 4 to 4096", s.queue_length);
  if (s.queues == 0 || s.queues > dev::k_max_storage_queues)
    return fmt::format("--num-queues {} cannot be; give 1 to {}", s.queues, dev::k_max_storage_queues);
  if (s.queue_id > 65535 || (s.queue_id != 0 && s.queue_id < s.queues))
    return fmt::format("--queue-id {} cannot be the last of {} queues; give {} to 65535, or 0", s.queue_id, s.queues,
                       s.queues);
  if (s.lbas_per_io == 0 || s.lbas_per_io > k_lbas_max)
    return fmt::format("--lbas-per-io {} cannot be; give 1 to {}", s.lbas_per_io, k_lbas_max);
  if (s.nsid == 0) return "--namespace 0 cannot be; namespaces count from 1";
  if (s.batch >= s.queue_length)
    return fmt::format(
        "--batch-size {} does not fit a queue of --queue-length {}, which holds {}; 0 posts all that fit", s.batch,
        s.queue_length, s.queue_length - 1);
  if (folded(s.reads) > k_ops_max || folded(s.writes) > k_ops_max)
    return fmt::format("more than {} ops are more than a test counts", k_ops_max);
  if (!std::has_single_bit(s.block_bytes) || s.block_bytes < 512 || s.block_bytes > 65536)
    return fmt::format("--file-block-size {} cannot be; give a power of two from 512 to 64k", s.block_bytes);
  return "";
}

// Names options that exclude each other.
std::string wrong_pair(const nvme_settings& s) {
  const bool reads = s.reads != 0, writes = s.writes != 0;
  if (!reads && !writes) return "nothing is to be done; give --read-io, --write-io or both";
  if (s.infinite && reads == writes) return "--infinite takes exactly one of --read-io and --write-io";
  if (s.verify && s.infinite) return "--verify and --infinite do not go together: writes come before reads";
  if (s.written && (!s.verify || writes)) return "--written goes with --verify and without --write-io";
  if (s.verify && !reads) return "--verify checks what --read-io reads; give both";
  if (s.verify && !writes && !s.written)
    return "--verify checks what --write-io wrote; give both, or --written for what an earlier run wrote";
  if (s.verify && !s.written && folded(s.reads) > folded(s.writes))
    return fmt::format("--verify cannot check {} reads of {} writes; give at most as many", folded(s.reads),
                       folded(s.writes));
  return "";
}

}  // namespace

tools::command add_nvme(tools::command& app, nvme_settings& s) {
  tools::command at =
      app.subcommand("nvme-ep", "reads and writes of a drive, or of a file behind a software controller");
  at.word("--controller", s.controller,
          "file:PATH, nvme:BDF/NSID, kmod:BDF/NSID, or the path of a controller, namespace or file; "
          "several, with commas, are striped (needed)");
  at.word("--access-pattern", s.access, "order of LBAs: random or sequential").default_text(s.access);
  at.size("--data-buffer-size", s.buffer_bytes, "buffer of each queue", 512, std::uint64_t{16} << 30);
  at.number("--base-lba", s.base_lba, "first LBA");
  at.number(
      "--lfsr-seed", s.seed,
      "of the data's pattern and of the random order (default: 0; with --verify and --write-io another one each time)");
  at.number("--read-io", s.reads, "reads of each queue; they come after the writes");
  at.number("--write-io", s.writes, "writes of each queue");
  at.number("--queue-id", s.queue_id,
            "identifier of the last queue, which has the others before it; 0: they count from 1");
  at.number("--queue-length", s.queue_length, "entries of a queue, a power of two, 4 to 4096");
  at.number("--num-queues", s.queues, "queues, a workgroup each");
  at.number("--namespace", s.nsid, "of a controller named by path or BDF");
  at.number("--lbas-per-io", s.lbas_per_io, "blocks of an op");
  at.flag("--infinite", s.infinite, "until Ctrl-C");
  at.number("--batch-size", s.batch, "ops that share a doorbell; 0: all that the buffer holds");
  at.flag("--verify", s.verify, "check what is read against what was written");
  at.flag("--written", s.written, "with --verify: an earlier run with this seed wrote it");
  at.flag("--i-know", s.i_know, "write to a drive, or over a file's data that no test wrote");
  at.size("--file-size", s.file_bytes, "of a file that is made", 65536, std::uint64_t{1} << 44);
  at.number("--file-block-size", s.block_bytes, "bytes of a block of a file");
  return at;
}

std::string wrong_nvme(const shared_settings& shared, nvme_settings& s) {
  if (s.controller.empty()) return "--controller is needed: file:PATH, nvme:BDF/NSID, kmod:BDF/NSID or a path";
  if (shared.threads != 1) return "--threads is for test-ep; nvme-ep takes --num-queues and --batch-size";
  if (std::string wrong = wrong_numbers(s); !wrong.empty()) return wrong;
  if (std::string wrong = wrong_pair(s); !wrong.empty()) return wrong;
  if (s.reads < 0 || s.writes < 0) note("negative counts are taken as positive");
  return "";
}

int run_nvme(const shared_settings& shared, const nvme_settings& s) {
  nvme_target target;
  try {
    const std::vector<nvme_target> members = find_targets(s);
    for (const nvme_target& one : members)
      if (s.writes != 0) check_writable(one, s);
    target = striped(members);
    // Before files are made. Where one is missing that nobody makes, opening says so.
    const xio_storage_attr_t attr = attr_of(target, s);
    if (target.is_file && (target.exists || (attr.flags & XIO_STORAGE_CREATE) != 0))
      check_extent(extent_of(members, attr), s);
    note_idle_sizes(target, s);
  } catch (const error& e) {
    return tools::refuse("xio-tester nvme-ep", e.what());
  }
  world_options options;
  if (shared.mmio_bridge) options.set("XIO_NVME_DOORBELL", "bridge");
  if (s.queue_id != 0) options.set("XIO_NVME_QUEUE_ID", std::to_string(s.queue_id));
  // Doorbells of drives are registers: only test-ep has any in memory.
  use_memory_mode(shared, ~4, options);
  std::optional<nvme_test> opened;
  try {
    opened.emplace(shared, s, target, options);
  } catch (const error& e) {
    // The drive that was named is not there, or has no such blocks.
    if (e.status() != XIO_ERR_ARG) throw;
    return tools::refuse("xio-tester nvme-ep", e.what());
  }
  nvme_test& test = *opened;
  bool right = true;
  if (s.writes != 0) right = test.phase(true);
  if (s.reads != 0 && right && !was_interrupted()) right = test.phase(false);
  if (!right) return k_exit_failed;
  return was_interrupted() && !s.infinite ? k_exit_interrupted : 0;
}

}  // namespace xio::tester
