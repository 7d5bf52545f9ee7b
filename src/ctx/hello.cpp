// SPDX-License-Identifier: MIT
#include "ctx/hello.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/fnv.hpp"
#include "base/peer_word.hpp"

namespace xio {
namespace {

template <std::size_t N>
void put_text(char (&to)[N], std::string_view from) {
  std::memcpy(to, from.data(), std::min(from.size(), N - 1));
}

template <std::size_t N>
std::string_view text_of(const char (&from)[N]) {
  return {from, strnlen(from, N)};
}

template <class T>
void must_be_equal(const char* what, const T& here, const T& there, std::size_t pe, const char* cure) {
  if (here != there)
    fail(XIO_ERR_CONFIG, "{} is '{}' on PE 0 but '{}' on PE {}; {}", what, printable(fmt::format("{}", here)),
         printable(fmt::format("{}", there)), pe, cure);
}

// Of the boot and of the namespace's inode; 0 where either is not known.
std::uint64_t own_pid_space() {
  struct stat space {};
  const std::string boot = gpu::boot_identity();
  if (boot.empty() || stat("/proc/self/ns/pid", &space) != 0) return 0;
  const std::string name = fmt::format("{} {}", boot, space.st_ino);
  return fnv_1a(std::as_bytes(std::span(name)));
}

}  // namespace

hello make_hello(const options& o) {
  hello h{};
  h.magic = k_hello_magic;
  h.version = k_hello_version;
  h.heap_bytes = o.heap_size;
  h.ticket_start = o.ticket_start;
  h.incarnation = k_incarnation;
  h.survives = static_cast<std::uint32_t>(o.survive);
  h.pid = static_cast<std::uint32_t>(getpid());
  h.pid_space = own_pid_space();
  put_text(h.platform, gpu::name());
  put_text(h.route, option::word_of(o.route));
  put_text(h.heap_kind, option::word_of(o.heap_kind));
  if (o.machine.empty()) put_text(h.kernel, gpu::boot_identity());
  put_text(h.machine, o.machine.empty() ? gpu::machine_identity() : o.machine);
  return h;
}

void check_hellos(const std::vector<hello>& all) {
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    if (all[pe].magic != k_hello_magic)
      fail(XIO_ERR_PEER, "PE {} does not speak as XIO does; start the same program with the same libxio on every PE",
           pe);
    must_be_equal("the version of libxio's exchanges", all[0].version, all[pe].version, pe,
                  "install the same libxio on every machine");
    must_be_equal("the platform", text_of(all[0].platform), text_of(all[pe].platform), pe,
                  "use builds of libxio for the same platform");
    must_be_equal("the heap's size (XIO_HEAP_SIZE or attr.heap_bytes)", all[0].heap_bytes, all[pe].heap_bytes, pe,
                  "give the same size on every PE");
    must_be_equal("XIO_ROUTE", text_of(all[0].route), text_of(all[pe].route), pe, "set it alike on every PE");
    must_be_equal("XIO_HEAP_KIND", text_of(all[0].heap_kind), text_of(all[pe].heap_kind), pe,
                  "set it alike on every PE");
    must_be_equal("XIO_SURVIVE", all[0].survives, all[pe].survives, pe, "set it alike on every PE");
    must_be_equal("XIO_TICKET_START", all[0].ticket_start, all[pe].ticket_start, pe, "set it alike on every PE");
  }
}

heap_offer make_offer(const gpu::heap& heap) {
  heap_offer offer{};
  const auto handle = heap.handle();
  if (handle.size() > sizeof offer.handle)
    fail(XIO_ERR_INTERNAL, "a heap's handle has {} bytes and may have {}; this is a bug of XIO", handle.size(),
         sizeof offer.handle);
  std::ranges::copy(handle, offer.handle);
  offer.handle_bytes = static_cast<std::uint32_t>(handle.size());
  offer.wave_size = gpu::wave_size();
  put_text(offer.gpu, gpu::identity());
  const auto address = reinterpret_cast<std::uint64_t>(heap.data());
  offer.alignment = address & (~address + 1);
  return offer;
}

std::vector<std::string> gpus_of(const std::vector<heap_offer>& all, const std::vector<bool>& together) {
  std::vector<std::string> out;
  for (std::size_t pe = 0; pe < all.size(); ++pe)
    out.emplace_back(together[pe] ? text_of(all[pe].gpu) : std::string_view{});
  return out;
}

// By the GPUs' own names, for each PE may number those that it sees from 0.
void check_sharing(const heap_options& o, const std::vector<std::string>& gpus, int devices) {
  if (o.gpu_sharing == option::gpu_sharing::yes) return;
  for (std::size_t pe = 0; pe < gpus.size(); ++pe)
    for (std::size_t other = pe + 1; !gpus[pe].empty() && other < gpus.size(); ++other)
      if (gpus[pe] == gpus[other])
        fail(XIO_ERR_CONFIG,
             "PE {} and PE {} have the same GPU, {}, and XIO_GPU_SHARING=no; {} can be seen here: start no more PEs "
             "than that on this machine, or set XIO_GPU_SHARING=yes",
             pe, other, printable(gpus[pe]), devices);
}

void check_offers(const std::vector<heap_offer>& all) {
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    must_be_equal("the wave's size", all[0].wave_size, all[pe].wave_size, pe,
                  "use GPUs of one kind (host platform: the same XIO_HOST_WAVE)");
    if (all[pe].handle_bytes > sizeof all[pe].handle)
      fail(XIO_ERR_PEER,
           "PE {} sent a heap handle of {} bytes, at most {} are possible; use the same libxio everywhere", pe,
           all[pe].handle_bytes, sizeof all[pe].handle);
  }
}

}  // namespace xio
