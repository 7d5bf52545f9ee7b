// SPDX-License-Identifier: MIT
// relay: a file crosses every engine. PE 0's kernel reads it from an NVMe queue and sends it chunk by chunk over
// the RDMA lane; PE 1's kernel moves each chunk with the SDMA lane and writes it through its own NVMe queue.
//
//   mpirun -np 2 examples/relay/relay --in FILE --out COPY        (or: xiorun -n 2 examples/relay/relay ...)
//
// The lesson: one lane of a wave owns one slot and walks a small state machine that never waits, so many
// reads, puts, copies and writes are in flight at once, and lanes that post together share a doorbell.
// send.hpp and receive.hpp are the kernels; the rest sets the stage. COPY appears when it is whole (files.hpp).
#include <getopt.h>
#include <xio/host.h>

#include <charconv>
#include <chrono>
#include <cinttypes>
#include <optional>

#include "../session.hpp"
#include "files.hpp"
#include "receive.hpp"
#include "send.hpp"

struct options {
  std::string in, out;
  uint64_t chunk = 256 * 1024, slots = 16;
};

[[noreturn]] static void refuse(const std::string& why) {
  leave(2,
        "relay: %s\nusage: mpirun -np 2 relay --in FILE --out COPY [--chunk BYTES] [--slots N]\n"
        "  --in FILE      or a whole drive by XIO's name for it: nvme:BDF/NSID, kmod:BDF/NSID\n"
        "  --chunk BYTES  bytes per transfer, a multiple of 4096, at most 1073741824 (default 262144)\n"
        "  --slots N      transfers in flight, 1 to 64 (default 16)",
        why.c_str());
}

static options parse(int argc, char** argv) {
  static const option known[] = {
      {"in", 1, nullptr, 'i'}, {"out", 1, nullptr, 'o'}, {"chunk", 1, nullptr, 'c'}, {"slots", 1, nullptr, 's'}, {}};
  options a;
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, "", known, nullptr)) != -1;) {
    if (c == 'i' || c == 'o') (c == 'i' ? a.in : a.out) = optarg;
    if (c == 'c' || c == 's') {
      const auto [end, code] = std::from_chars(optarg, optarg + std::strlen(optarg), c == 'c' ? a.chunk : a.slots);
      if (code != std::errc() || *end != 0)
        refuse(std::string(c == 'c' ? "--chunk" : "--slots") + " wants a number, not '" + optarg + "'");
    }
    if (c == '?') refuse(std::string("unknown or incomplete option '") + argv[optind - 1] + "'");
  }
  if (optind < argc) refuse(std::string("unexpected argument '") + argv[optind] + "'");
  if (a.in.empty() || a.out.empty()) refuse("--in and --out are needed");
  if (a.chunk == 0 || a.chunk % 4096 != 0 || a.chunk > 1 << 30)
    refuse("--chunk must be a multiple of 4096, at most 1073741824");
  if (a.slots < 1 || a.slots > k_max_slots) refuse("--slots must be 1 to 64");
  return a;
}

int main(int argc, char** argv) {
  const options o = parse(argc, argv);
  session s(2, 2, XIO_ROUTE_RDMA);
  // The files are opened first, so that an error in them is reported before any data is moved.
  const bool drive = s.me == 0 && (o.in.rfind("nvme:", 0) == 0 || o.in.rfind("kmod:", 0) == 0);
  std::optional<output> out;
  if (s.me == 1) out.emplace(o.out);
  const int fd = out ? out->fd : drive ? -1 : open_input(o.in);

  const auto window = [&] { return s.symmetric<unsigned char>(o.slots * o.chunk); };
  job j{s.ctx, {}, {}, s.symmetric<mailbox>(1), window(), window(), window(), 0, o.chunk, s.status};
  xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
  attr.route = XIO_ROUTE_SDMA;
  check(xio_ctx_create(s.world, &attr, &j.sdma), "SDMA context");
  const auto open_storage = [&] {
    xio_storage_attr_t storage = XIO_STORAGE_ATTR_INIT;
    storage.bytes = j.bytes;
    storage.flags = out ? XIO_STORAGE_TRUNCATE : XIO_STORAGE_READ_ONLY;
    if (j.bytes == 0 && !drive) return;
    const std::string name = drive ? o.in : "file:" + path_of(fd);
    check(xio_storage_open(s.world, name.c_str(), &storage, &j.file), out ? o.out.c_str() : o.in.c_str());
    if (drive) check(xio_storage_size(s.world, j.file, &j.bytes, nullptr), "storage size");
  };
  if (!out) {
    if (!drive) j.bytes = static_cast<uint64_t>(lseek(fd, 0, SEEK_END));
    open_storage();
    session::write(&j.mail->file_bytes, {j.bytes});
  }
  s.barrier();
  if (out) {
    check(xio_host_get(s.world, j.rdma, &j.mail->file_bytes, &j.mail->file_bytes, sizeof j.bytes, 0), "size");
    j.bytes = session::read(&j.mail->file_bytes, 1)[0];
    open_storage();
  }

  const auto start = std::chrono::steady_clock::now();
  const dim3 lanes(static_cast<unsigned>(o.slots));
  if (out)
    hipLaunchKernelGGL(receive_file, dim3(1), lanes, 0, nullptr, j);
  else
    hipLaunchKernelGGL(send_file, dim3(1), lanes, 0, nullptr, j);
  hipLaunchKernelGGL(finish, dim3(1), dim3(1), 0, nullptr, j, 1 - s.me);
  check(hipDeviceSynchronize(), "kernel");
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  const auto status = static_cast<xio_status_t>(*j.status);
  if (status != XIO_OK)
    std::fprintf(stderr, "relay: PE %d: %s; %s was not written\n", s.me, xio_status_name(status), o.out.c_str());
  else if (s.me == 0)
    std::printf("relay: %" PRIu64 " bytes in %.3f s, %.1f MB/s\n", j.bytes, seconds, double(j.bytes) / 1e6 / seconds);
  if (j.bytes != 0) {
    xio_engine_stats_t did[] = {XIO_ENGINE_STATS_INIT, XIO_ENGINE_STATS_INIT, XIO_ENGINE_STATS_INIT};
    check(xio_storage_stats(s.world, j.file, &did[0]), "statistics");
    check(xio_ctx_stats(s.world, j.rdma, XIO_ROUTE_RDMA, &did[1]), "statistics");
    check(xio_ctx_stats(s.world, j.sdma, XIO_ROUTE_SDMA, &did[2]), "statistics");
    for (const int i : {0, 1, 2})
      std::printf("  PE %d %.4s %8" PRIu64 " ops %8" PRIu64 " doorbells %13" PRIu64 " bytes\n", s.me,
                  &"nvmerdmasdma"[4 * i], did[i].ops, did[i].doorbells, did[i].bytes);
    check(xio_storage_close(s.world, j.file), "close");
  }
  return s.end(status == XIO_OK && (!out || out->take_name()) ? 0 : 1);
}
