// SPDX-License-Identifier: MIT
// rdma-ep: puts of a PE to itself through a NIC, or ping-pong between two nodes.
#include "config.h"

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/error.hpp"
#include "bootstrap/launcher.hpp"
#include "tools/command_line.hpp"
#include "tools/near_miss.hpp"
#include "tools/xio-tester/rdma_kernels.hpp"
#include "tools/xio-tester/run.hpp"
#include "tools/xio-tester/world.hpp"
#include "transport/rdma/verbs/verbs.hpp"
#if HAVE_VERBS
#include "transport/rdma/verbs/inventory.hpp"
#endif

namespace xio::tester {

bool is_launched(const rdma_settings& s) {
  return !s.server && !s.client &&
         (bootstrap::started_by_mpirun() || bootstrap::started_by_xiorun() || bootstrap::started_with_others());
}

namespace {

constexpr std::uint32_t k_posters_max = 256;
constexpr std::uint32_t k_queues_max = 16;
constexpr std::uint64_t k_transfer_max = std::uint64_t{1} << 30;
constexpr std::uint64_t k_ball_max = std::uint64_t{16} << 20;
constexpr std::uint64_t k_heap_slack = std::uint64_t{4} << 20;

// The names that people give the families, and the library's own.
const std::map<std::string, std::string>& providers() {
  static const std::map<std::string, std::string> all{
      {"bnxt", "bnxt"},   {"bnxt_re", "bnxt"},     {"mlx5", "mlx5"},        {"ionic", "ionic"}, {"pensando", "ionic"},
      {"ernic", "ernic"}, {"rocm_ernic", "ernic"}, {"rocm-ernic", "ernic"}, {"proxy", "proxy"}};
  return all;
}

std::vector<std::string> provider_names() {
  std::vector<std::string> names;
  for (const auto& [name, family] : providers()) names.push_back(name);
  return names;
}

bool is_set(const char* variable) { return set_variable(variable) != nullptr; }

bool is_pair(const rdma_settings& s) { return s.server || s.client || (!s.loopback && is_launched(s)); }

world_options options_of(const shared_settings& shared, const rdma_settings& s) {
  world_options o;
  use_memory_mode(shared, 15, o);
  if (!s.provider.empty()) {
    o.set("XIO_NIC_FAMILY", providers().at(s.provider));
  } else if (!is_set("XIO_NIC_FAMILY") && !rdma::why_no_verbs(options::from_environment()).empty()) {
    // A real device says by itself what it is; the software NIC can be any.
    o.set("XIO_NIC_FAMILY", "bnxt");
  }
  if (!s.device.empty()) o.set("XIO_HCA_LIST", s.device);
  o.set("XIO_RDMA_QUEUES", std::to_string(std::bit_ceil(s.queues)));
  if (s.relaxed_ordering) o.set("XIO_RDMA_RELAXED_ORDERING", "1");
  if (s.cq_depth) o.set("XIO_RDMA_CQ_DEPTH", std::to_string(*s.cq_depth));
  if (s.inline_threshold) o.set("XIO_RDMA_INLINE", std::to_string(*s.inline_threshold));
  if (s.traffic_class != 0) o.set("XIO_RDMA_TRAFFIC_CLASS", std::to_string(s.traffic_class));
  return o;
}

int run_loopback(const shared_settings& shared, const rdma_settings& s) {
  const std::uint64_t stride = (s.transfer_bytes + 127) / 128 * 128;
  const std::uint64_t batch = std::max<std::uint64_t>(s.batch, 1), ops = s.infinite ? 0 : s.iterations;
  const std::uint64_t area = s.queues * batch * stride;
  world_settings ws;
  ws.heap_bytes = 2 * area + k_heap_slack;
  ws.route = XIO_ROUTE_RDMA;
  ws.ring_depth = s.sq_depth;
  ws.options = options_of(shared, s);
  const world w(ws);
  const auto threads = static_cast<std::uint32_t>(std::min<std::uint64_t>(batch, k_posters_max));
  const gpu::buffer posted(s.queues * batch * sizeof(xio_req_t), gpu::place::device);
  const gpu::buffer begun(s.queues * batch * sizeof(u64), gpu::place::device);
  run r(shared,
        {"rdma-ep put", std::uint64_t{s.queues} * threads, ops * s.queues, s.transfer_bytes, backend_text("rdma")});
  rdma_job job{};
  job.ctx = w.ctx();
  job.tally = r.view();
  job.dst = static_cast<u8*>(w.allocate(area));
  job.src = static_cast<u8*>(w.allocate(area));
  job.posted = posted.as<xio_req_t>();
  job.begun = begun.as<u64>();
  job.stride = stride;
  job.bytes = s.transfer_bytes;
  job.ops = ops;
  job.batch = batch;
  job.seed = static_cast<u64>(s.seed);
  job.pe = w.my_pe();
  job.verify = s.verify ? 1 : 0;
  std::printf("rdma-ep: loopback, %u queue%s of %u entries, %s\n", s.queues, s.queues == 1 ? "" : "s", s.sq_depth,
              backend_text("rdma").c_str());
  r.start([&] { return launch_rdma_loopback(job, s.queues, threads); });
  if (!r.print(s.verify)) return k_exit_failed;
  if (shared.verbose) {
    xio_engine_stats_t stats = XIO_ENGINE_STATS_INIT;
    must(xio_ctx_stats(w.get(), w.ctx(), XIO_ROUTE_RDMA, &stats));
    std::printf("  %llu work requests, %llu doorbells\n", static_cast<unsigned long long>(stats.ops),
                static_cast<unsigned long long>(stats.doorbells));
  }
  return was_interrupted() && ops != 0 ? k_exit_interrupted : 0;
}

// Both sides stop here if their options differ: else one would wait for a ball that never comes.
void check_terms(const world& w, const pingpong_terms& mine) {
  auto* said = static_cast<pingpong_terms*>(w.allocate(sizeof mine));
  auto* heard = static_cast<pingpong_terms*>(w.allocate(sizeof mine));
  const gpu::buffer status(sizeof(int), gpu::place::shared);
  const int other = w.my_pe() == 0 ? 1 : 0;
  gpu::copy(said, &mine, sizeof mine);
  must(xio_host_barrier(w.get()));
  const char* wrong = launch_rdma_terms(w.ctx(), heard, said, other, status.as<int>());
  if (const char* ended = finish_kernels(); wrong == nullptr) wrong = ended;
  if (wrong != nullptr)
    fail(XIO_ERR_INTERNAL, "rdma-ep: the kernel that asks PE {} for its settings died: {}", other, wrong);
  if (*status.as<int>() != XIO_OK)
    fail(static_cast<xio_status_t>(*status.as<int>()), "rdma-ep: PE {} cannot be asked for its settings: {}", other,
         xio_status_name(static_cast<xio_status_t>(*status.as<int>())));
  pingpong_terms theirs{};
  gpu::copy(&theirs, heard, sizeof theirs);
  must(xio_host_barrier(w.get()));
  if (theirs.bytes != mine.bytes || theirs.rounds != mine.rounds || theirs.seed != mine.seed ||
      theirs.verify != mine.verify)
    fail(XIO_ERR_ARG,
         "rdma-ep: this side has --pingpong-size {} --pingpong-iters {} --seed {}{}, and the other side has {}, {}, "
         "{}{}; give both the same",
         mine.bytes, mine.rounds, mine.seed, mine.verify != 0 ? " --verify" : "", theirs.bytes, theirs.rounds,
         theirs.seed, theirs.verify != 0 ? " --verify" : "");
}

int run_pair(const shared_settings& shared, const rdma_settings& s) {
  world_settings ws;
  // The same on both sides, even if their options differ: check_terms says in what.
  ws.heap_bytes = 2 * k_ball_max + k_heap_slack;
  ws.route = XIO_ROUTE_RDMA;
  ws.ring_depth = s.sq_depth;
  ws.options = options_of(shared, s);
  ws.bootstrap = "auto";
  if (s.server || s.client) {
    ws.bootstrap = "tcp";
    ws.tcp_root = fmt::format("{}:{}", s.client ? s.server_host : "0.0.0.0", s.port);
    ws.tcp_rank = s.client ? 1 : 0;
    ws.tcp_size = 2;
  }
  const world w(ws);
  if (w.n_pes() < 2) fail(XIO_ERR_ARG, "rdma-ep: ping-pong wants two PEs and there is one; start it with mpirun -np 2");
  pingpong_job job{};
  job.terms = {s.pingpong_bytes, s.pingpong_iterations, static_cast<u64>(s.seed), s.verify ? 1u : 0u};
  check_terms(w, job.terms);
  job.ctx = w.ctx();
  job.ball = static_cast<u8*>(w.allocate(s.pingpong_bytes));
  job.mine = static_cast<u8*>(w.allocate(s.pingpong_bytes));
  job.signal = static_cast<u64*>(w.allocate(sizeof(u64)));
  bool right = true;
  if (w.my_pe() < 2) {
    run r(shared, {"rdma-ep ping-pong", 1, s.pingpong_iterations, s.pingpong_bytes, backend_text("rdma")});
    job.tally = r.view();
    r.start([&] { return launch_rdma_pingpong(job); });
    // The one who throws first has the round trip; the other's times contain the waiting for it.
    if (w.my_pe() == 0)
      std::printf("rdma-ep: ping-pong of 2 PEs, round trips, %s\n", backend_text("rdma").c_str());
    else
      std::printf("rdma-ep: ping-pong, the other side, %s\n", backend_text("rdma").c_str());
    right = r.print(s.verify);
  }
  must(xio_host_barrier(w.get()));
  if (!right) return k_exit_failed;
  return was_interrupted() ? k_exit_interrupted : 0;
}

std::string wrong_pair(const tools::command& at, const rdma_settings& s) {
  if (s.server && s.client) return "--server and --client do not go together; start one on each node";
  const bool pair = s.server || s.client;
  if (pair && s.loopback) return "--loopback does not go with --server and --client";
  if (s.client && s.server_host.empty())
    return "--client wants --server-host, the name or address of the server's node";
  if (!s.client && !s.server_host.empty()) return "--server-host goes with --client";
  if (!pair && at.given("--port")) return "--port goes with --server and --client";
  if (s.port == 0 || s.port > 65535) return fmt::format("--port {} cannot be; give 1 to 65535", s.port);
  if (s.loopback && s.no_loopback) return "--loopback and --no-loopback do not go together";
  if (s.no_loopback && !is_pair(s)) return "--no-loopback wants another PE: --server and --client, or mpirun -np 2";
  if (is_pair(s) && (at.given("--batch-size") || at.given("--num-queues")))
    return "--batch-size and --num-queues are for loopback";
  if (is_pair(s) && s.infinite) return "--infinite is for loopback; ping-pong takes --pingpong-iters";
  if (pair && !is_set("XIO_TCP_KEY") && !is_set("XIO_TCP_KEY_FILE"))
    return "the nodes prove to each other who they are: set the same XIO_TCP_KEY, or XIO_TCP_KEY_FILE, on both "
           "(a key: openssl rand -hex 32)";
  return "";
}

void note_idle(const tools::command& at, const std::vector<const char*>& flags, const char* where) {
  for (const char* flag : flags)
    if (at.given(flag)) std::fprintf(stderr, "xio-tester: note: %s has no effect%s\n", flag, where);
}

// As XIO_HCA_LIST has it: names, or name:port, with commas; those behind a ^ are left out and need not be there.
std::string wrong_device([[maybe_unused]] const rdma_settings& s) {
#if HAVE_VERBS
  if (s.device.empty() || s.device.front() == '^') return "";
  std::vector<std::string> there;
  std::string list;
  for (const auto& d : rdma::read_devices()) {
    there.push_back(d.facts.name);
    list += (list.empty() ? "" : ", ") + d.facts.name;
  }
  const std::string name = s.device.substr(0, s.device.find_first_of(":,"));
  if (std::ranges::find(there, name) == there.end())
    return fmt::format("--device {} is not there; this machine has: {}{}", name, list.empty() ? "none" : list,
                       tools::did_you_mean(name, there));
#endif
  return "";
}

std::string wrong_numbers(const rdma_settings& s) {
  if (!s.provider.empty() && providers().count(s.provider) == 0)
    return fmt::format("--provider '{}' is not known{}", s.provider, tools::did_you_mean(s.provider, provider_names()));
  if (s.sq_depth < 4 || s.sq_depth > 32768 || !std::has_single_bit(s.sq_depth))
    return fmt::format("--sq-depth {} cannot be; give a power of two from 4 to 32768", s.sq_depth);
  if (s.batch >= s.sq_depth)
    return fmt::format("--batch-size {} does not fit a queue of --sq-depth {}; give less", s.batch, s.sq_depth);
  if (s.queues == 0 || s.queues > k_queues_max)
    return fmt::format("--num-queues {} cannot be; give 1 to {}", s.queues, k_queues_max);
  if (s.pingpong_bytes % 8 != 0) return fmt::format("--pingpong-size {} is no multiple of 8", s.pingpong_bytes);
  if (s.pingpong_iterations == 0) return "--pingpong-iters 0 cannot be; give 1 or more";
  if (s.cq_depth && (*s.cq_depth == 0 || *s.cq_depth > 65536 || !std::has_single_bit(*s.cq_depth)))
    return fmt::format("--cq-depth {} cannot be; give a power of two up to 65536", *s.cq_depth);
  if (s.traffic_class > 255) return fmt::format("--traffic-class {} cannot be; give 0 to 255", s.traffic_class);
  if (s.gpu < 0) return fmt::format("--gpu-device {} cannot be; give 0 or more", s.gpu);
  if (s.gpu > 0 && std::string(gpu::name()) == "host")
    return fmt::format("--gpu-device {}: this platform has device 0 alone", s.gpu);
  if (s.gpu > 0 && s.gpu >= gpu::device_count())
    return fmt::format(
        "--gpu-device {} is not among the {} GPUs that this process sees; give a lower number, or show more by "
        "CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES",
        s.gpu, gpu::device_count());
  return "";
}

}  // namespace

tools::command add_rdma(tools::command& app, rdma_settings& s) {
  tools::command at = app.subcommand("rdma-ep", "puts through an RDMA NIC to itself, or ping-pong between two nodes");
  at.number("-n,--iterations", s.iterations, "puts of each queue; 0: until Ctrl-C");
  at.word("--provider", s.provider,
          "bnxt, bnxt_re, mlx5, ionic, pensando, ernic, rocm_ernic, rocm-ernic or proxy (default: what the "
          "device is; bnxt on the software NIC)");
  at.word("--device", s.device, "RDMA device, by name (default: the closest)");
  at.number("--sq-depth", s.sq_depth, "entries of a send queue, a power of two");
  at.number("--cq-depth", s.cq_depth,
            "entries of a completion queue, a power of two; not for families that keep one completion alone "
            "(default: twice --sq-depth)");
  at.size("--transfer-size", s.transfer_bytes, "bytes of a put", 1, k_transfer_max);
  at.number("--inline-threshold", s.inline_threshold,
            "most bytes of a put that travel in its entry (default: what the family's entries hold)");
  at.flag("--loopback", s.loopback, "queue pairs to itself (default without a second PE)");
  at.flag("--no-loopback", s.no_loopback, "refuse to run without a second PE");
  at.flag("--server", s.server, "first of two nodes");
  at.flag("--client", s.client, "second of two nodes");
  at.word("--server-host", s.server_host, "name or address of the first node");
  at.number("--port", s.port, "where the first node listens");
  at.size("--pingpong-size", s.pingpong_bytes, "bytes of the ball, a multiple of 8", 16, k_ball_max);
  at.number("--pingpong-iters", s.pingpong_iterations, "round trips");
  at.number("--batch-size", s.batch, "puts that share a doorbell; 0 is 1");
  at.number("--num-queues", s.queues, "queue pairs, a workgroup each");
  at.flag("--infinite", s.infinite, "until Ctrl-C");
  at.number("--gpu-device", s.gpu, "number of the GPU, among those that the environment shows");
  at.flag("--pcie-relaxed-ordering", s.relaxed_ordering, "let PCIe reorder the NIC's writes");
  at.number("--traffic-class", s.traffic_class, "of the packets");
  at.flag("--verify", s.verify, "check what every op brought");
  at.number("--seed", s.seed, "of the data's pattern");
  return at;
}

std::string wrong_rdma(const tools::command& at, const shared_settings& shared, rdma_settings& s) {
  if (shared.threads != 1) return "--threads is for test-ep; rdma-ep takes --num-queues and --batch-size";
  if (s.infinite && at.given("--iterations") && s.iterations != 0)
    return "--infinite and --iterations do not go together";
  if (s.iterations == 0) s.infinite = true;
  if (std::string wrong = wrong_numbers(s); !wrong.empty()) return wrong;
  if (std::string wrong = wrong_pair(at, s); !wrong.empty()) return wrong;
  if (is_pair(s))
    note_idle(at, {"--iterations", "--transfer-size"},
              " on a ping-pong, which has --pingpong-iters and --pingpong-size");
  else
    note_idle(at, {"--pingpong-iters", "--pingpong-size"},
              " on a loopback, which has --iterations and --transfer-size");
  return "";
}

int run_rdma(const shared_settings& shared, const rdma_settings& s) {
  if (const std::string wrong = wrong_device(s); !wrong.empty()) return tools::refuse("xio-tester rdma-ep", wrong);
  // A device that is not 0 is the world's, too.
  if (const char* wrong = s.gpu != 0 ? select_device(s.gpu) : nullptr)
    fail(XIO_ERR_UNSUPPORTED, "rdma-ep: --gpu-device {} cannot be used: {}; give another", s.gpu, wrong);
  try {
    return is_pair(s) ? run_pair(shared, s) : run_loopback(shared, s);
  } catch (const error& e) {
    // Depths and sizes that the family, known by now, does not have.
    if (e.status() != XIO_ERR_CONFIG) throw;
    return tools::refuse("xio-tester rdma-ep", e.what());
  }
}

}  // namespace xio::tester
