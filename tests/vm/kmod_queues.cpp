// SPDX-License-Identifier: MIT
// Queue pairs of a controller that is bound to the module: data against what Linux' own driver wrote, and the other way
// round.
#include <csetjmp>
#include <csignal>
#include <fstream>
#include <iterator>
#include <memory>

#include <sys/uio.h>
#include <sys/wait.h>

#include "kmod_queue.hpp"

namespace kmod {
namespace {

constexpr std::uint32_t k_flush = 0, k_write = 1, k_read = 2;
constexpr std::size_t k_piece = 16384;  // of a command: four pages, hence a list

struct drive_facts {
  std::uint64_t blocks = 0, cap = 0;
  std::uint32_t block_bytes = 0;
};

drive_facts identify(int fd, const xio_kmod_pci& device) {
  std::vector<unsigned char> data(2 * k_page, 0xee);
  xio_kmod_identify i{};
  i.device = device;
  i.cns = 1;
  i.data = reinterpret_cast<std::uintptr_t>(data.data());
  CHECK(ioctl(fd, XIO_KMOD_IDENTIFY, &i) == 0);
  CHECK(std::memcmp(data.data() + 4, "xiokmod ", 8) == 0);  // SN, as the guest was given it
  CHECK(data[k_page] == 0xee);
  i.data = 16;
  REFUSED(ioctl(fd, XIO_KMOD_IDENTIFY, &i), EFAULT);
  i.cns = 0;
  i.nsid = 0xfffff000;
  i.data = reinterpret_cast<std::uintptr_t>(data.data());
  REFUSED(ioctl(fd, XIO_KMOD_IDENTIFY, &i), EIO);
  i.nsid = 1;
  CHECK(ioctl(fd, XIO_KMOD_IDENTIFY, &i) == 0);
  drive_facts f;
  std::memcpy(&f.blocks, data.data(), 8);                      // NSZE
  f.block_bytes = 1u << data[128 + 4 * (data[26] & 0xf) + 2];  // LBADS of the format in use
  f.cap = i.cap;
  CHECK(f.blocks * f.block_bytes == 16u << 20);
  return f;
}

// One command over k_piece octets of `data` from `at` on.
command transfer(std::uint32_t opcode, const pinned& data, std::uint64_t at, const block& list, std::uint64_t lba,
                 const drive_facts& f) {
  auto* entries = static_cast<volatile std::uint64_t*>(list.memory);
  for (std::size_t i = 0; i < 3; ++i) entries[i] = data.address(at + (i + 1) * k_page);
  command c;
  c.dw0 = opcode;
  c.prp1 = data.address(at);
  c.prp2 = list.a.address;
  c.dw10 = static_cast<std::uint32_t>(lba);
  c.dw11 = static_cast<std::uint32_t>(lba >> 32);
  c.dw12 = static_cast<std::uint32_t>(k_piece / f.block_bytes) - 1;
  return c;
}

void refusals(int fd, const xio_kmod_pci& device, const drive_facts& f) {
  const block two(fd, device, 2 * k_page), one(fd, device, k_page);
  const auto mqes = static_cast<std::uint32_t>(f.cap & 0xffff) + 1;
  struct attempt {
    std::uint32_t sq, cq, sq_entries, cq_entries;
    int wanted;
  };
  const std::uint32_t a = two.a.handle, b = one.a.handle;
  for (const auto& t : {attempt{a, b, 1, 8, EINVAL},
                        {a, b, 8, 1, EINVAL},
                        {a, b, 8, 0, EINVAL},
                        {a, b, 129, 8, EINVAL},
                        {a, b, 8, 257, EINVAL},
                        {b, a, 65, 8, EINVAL},
                        {a, a, 8, 8, EINVAL},
                        {a, 0, 8, 8, ENOENT},
                        {0xffffffff, b, 8, 8, ENOENT},
                        {a, b, 0xffffffff, 8, EINVAL}}) {
    xio_kmod_queue_pair q{};
    q.device = device;
    q.sq_memory = t.sq;
    q.cq_memory = t.cq;
    q.sq_entries = t.sq_entries;
    q.cq_entries = t.cq_entries;
    REFUSED(ioctl(fd, XIO_KMOD_QUEUE_PAIR, &q), t.wanted);
  }
  // More than the controller takes, in memory that would hold it.
  const block large(fd, device, 4 << 20);
  xio_kmod_queue_pair q{};
  q.device = device;
  q.sq_memory = large.a.handle;
  q.cq_memory = one.a.handle;
  q.sq_entries = mqes + 1;
  q.cq_entries = 8;
  REFUSED(ioctl(fd, XIO_KMOD_QUEUE_PAIR, &q), EINVAL);
}

// As many as the guest's controller has, no more, and all of them again.
void all_pairs(const xio_kmod_pci& device) {
  for (int lap = 0; lap < 2; ++lap) {
    const descriptor fd = open_module();
    std::vector<std::unique_ptr<queue_pair>> pairs;
    for (int i = 0; i < 4; ++i) {
      pairs.push_back(std::make_unique<queue_pair>(fd, device));
      CHECK(pairs.back()->status == 0);
      if (failures != 0) return;
      CHECK(pairs.back()->run({}) == 0);  // opcode 0: flush
    }
    const queue_pair more(fd, device);
    CHECK(more.status == ENOSPC);
    REFUSED(release(fd, pairs[0]->sq().a.handle), EBUSY);
    CHECK(release(fd, pairs[0]->a.handle) == 0);
    CHECK(release(fd, pairs[0]->sq().a.handle) == 0);
    const queue_pair again(fd, device);
    CHECK(again.status == 0);
  }
}

// Queues in pinned buffers, as in memory of a GPU.
void pinned_queues(int fd, const xio_kmod_pci& device) {
  const buffer sqs(4 * k_page), cqs(4 * k_page);
  std::memset(sqs.memory(), 0, sqs.bytes());
  std::memset(cqs.memory(), 0, cqs.bytes());
  const pinned sq(fd, device, sqs), cq(fd, device, cqs);
  struct attempt {
    std::uint64_t sq_offset, cq_offset;
    int wanted;
  };
  for (const auto& t : {attempt{64, 0, EINVAL},
                        {0, k_page / 2, EINVAL},
                        {4 * k_page, 0, EINVAL},
                        {0, 4 * k_page, EINVAL},
                        {~std::uint64_t{k_page - 1}, 0, EINVAL}}) {
    const queue_pair q(fd, device, {sq.a.handle, t.sq_offset, nullptr}, {cq.a.handle, t.cq_offset, nullptr});
    CHECK(q.status == t.wanted);
  }
  const queue_pair one(fd, device, {sq.a.handle, 0, nullptr}, {sq.a.handle, k_page, nullptr});
  CHECK(one.status == EINVAL);
  const block own(fd, device, k_page);
  const queue_pair behind(fd, device, {own.a.handle, k_page, nullptr}, {cq.a.handle, 0, nullptr});
  CHECK(behind.status == EINVAL);
  queue_pair q(fd, device, {sq.a.handle, 2 * k_page, sqs.memory() + 2 * k_page},
               {cq.a.handle, k_page, cqs.memory() + k_page});
  CHECK(q.status == 0);
  if (failures != 0) return;
  for (std::uint32_t i = 0; i < 3 * k_entries; ++i) CHECK(q.run({}) == 0);
  // It wrote where it should and nowhere else.
  for (std::size_t i = 0; i < cqs.bytes(); ++i)
    if (i / k_page != 1 && cqs.memory()[i] != 0) return CHECK(!"a completion beside its queue");
  REFUSED(release(fd, sq.a.handle), EBUSY);
  const queue_pair second(fd, device, {sq.a.handle, 0, nullptr}, {own.a.handle, 0, nullptr});
  CHECK(second.status == EBUSY);
  CHECK(release(fd, q.a.handle) == 0);
  CHECK(release(fd, sq.a.handle) == 0);
  CHECK(release(fd, cq.a.handle) == 0);
}

}  // namespace

void try_queues(const std::string& bdf, const std::string& path) {
  const xio_kmod_pci device = device_of(bdf);
  const descriptor fd = open_module();
  const drive_facts f = identify(fd, device);
  refusals(fd, device, f);
  all_pairs(device);
  pinned_queues(fd, device);
  if (failures != 0) return;

  std::ifstream file(path, std::ios::binary);
  const std::string wanted((std::istreambuf_iterator<char>(file)), {});
  CHECK(wanted.size() == 1u << 20);
  const buffer b(2u << 20);
  const pinned data(fd, device, b);
  const block list(fd, device, k_page);
  queue_pair q(fd, device);
  if (failures != 0) return;
  // A place beside where it belongs shows.
  std::memset(b.memory(), 0xcc, b.bytes());
  const std::uint64_t blocks = k_piece / f.block_bytes;
  for (std::uint64_t i = 0; i < wanted.size() / k_piece; ++i)
    CHECK(q.run(transfer(k_read, data, i * k_piece, list, i * blocks, f)) == 0);
  CHECK(std::memcmp(b.memory(), wanted.data(), wanted.size()) == 0);
  for (std::size_t i = wanted.size(); i < b.bytes(); ++i)
    if (b.memory()[i] != 0xcc) return CHECK(!"nothing past the end is written");

  // Each word says where it belongs: the second MiB of the drive, for Linux' driver to read.
  auto* words = reinterpret_cast<std::uint64_t*>(b.memory());
  for (std::size_t i = 0; i < wanted.size() / 8; ++i) words[i] = ((wanted.size() + 8 * i) << 16) ^ 0x5a17;
  for (std::uint64_t i = 0; i < wanted.size() / k_piece; ++i)
    CHECK(q.run(transfer(k_write, data, i * k_piece, list, wanted.size() / f.block_bytes + i * blocks, f)) == 0);
  CHECK(q.run({}) == 0);
  std::ofstream(path + ".second", std::ios::binary)
      .write(reinterpret_cast<const char*>(words), static_cast<std::streamsize>(wanted.size()));
  // LBA Out of Range, generic status 80h.
  CHECK((q.run(transfer(k_read, data, 0, list, f.blocks, f)) & 0x7ff) == 0x80);
}

/* ---- what is taken away ------------------------------------------------------------------------------------------ */
namespace {

sigjmp_buf out;
void jump(int) { siglongjmp(out, 1); }

bool faults(volatile unsigned char* p) {
  struct sigaction to {
  }, before{};
  to.sa_handler = jump;
  sigaction(SIGBUS, &to, &before);
  const bool result = sigsetjmp(out, 1) != 0;
  if (!result) (void)*p;
  sigaction(SIGBUS, &before, nullptr);
  return result;
}

void write_word(const std::string& path, const std::string& word) {
  const descriptor fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  CHECK(fd >= 0);
  CHECK(write(fd, word.data(), word.size()) == static_cast<ssize_t>(word.size()));
}

void take_away(const std::string& bdf, const std::string& action) {
  if (action == "unbind")
    write_word("/sys/bus/pci/drivers/xio/unbind", bdf);
  else
    write_word("/sys/bus/pci/devices/" + bdf + "/" + action, "1");
}

// A process that dies with its queue full of reads.
void die_in_flight(const std::string& bdf) {
  const pid_t child = fork();
  if (child == 0) {
    const xio_kmod_pci device = device_of(bdf);
    const descriptor fd = open_module();
    const buffer b(k_piece);
    const pinned data(fd, device, b);
    const block list(fd, device, k_page);
    const drive_facts f = identify(fd, device);
    queue_pair q(fd, device);
    CHECK(q.status == 0);
    if (failures != 0) _exit(1);
    for (std::uint32_t i = 0; i + 1 < k_entries; ++i) q.submit(transfer(k_read, data, 0, list, 0, f));
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

}  // namespace

void try_loss(const std::string& bdf, const std::string& action) {
  if (action == "kill") {
    for (int i = 0; i < 5; ++i) die_in_flight(bdf);
    return all_pairs(device_of(bdf));
  }
  const xio_kmod_pci device = device_of(bdf);
  const descriptor fd = open_module();
  const buffer b(4 * k_page);
  const pinned data(fd, device, b);
  const block memory(fd, device, k_page);
  queue_pair q(fd, device);
  CHECK(q.status == 0);
  if (failures != 0) return;
  CHECK(q.run({}) == 0);
  CHECK(!faults(static_cast<unsigned char*>(memory.memory)) && !faults(q.doorbells));
  // Pages that another holds while they are taken away are not given to somebody else.
  int hold[2];
  CHECK(pipe(hold) == 0);
  std::memset(memory.memory, 0x77, k_page);
  const iovec held{memory.memory, k_page};
  CHECK(vmsplice(hold[1], &held, 1, 0) == static_cast<ssize_t>(k_page));
  take_away(bdf, action);
  CHECK(faults(static_cast<unsigned char*>(memory.memory)));
  CHECK(faults(q.doorbells));
  unsigned char kept[k_page] = {};
  CHECK(read(hold[0], kept, k_page) == static_cast<ssize_t>(k_page) && kept[0] == 0x77 && kept[k_page - 1] == 0x77);
  close(hold[0]);
  close(hold[1]);
  CHECK(map(fd, memory.a.offset, k_page) == MAP_FAILED ||
        faults(static_cast<unsigned char*>(map(fd, memory.a.offset, k_page))));
  xio_kmod_segment room[4];
  xio_kmod_segments s{};
  s.handle = data.a.handle;
  s.count = 4;
  s.array = reinterpret_cast<std::uintptr_t>(room);
  REFUSED(ioctl(fd, XIO_KMOD_SEGMENTS, &s), ENODEV);
  xio_kmod_queue_pair again = q.a;
  REFUSED(ioctl(fd, XIO_KMOD_QUEUE_PAIR, &again), ENODEV);
  // In the order in which it would be refused, were it still there.
  CHECK(release(fd, q.sq().a.handle) == 0);
  CHECK(release(fd, q.a.handle) == 0);
  CHECK(release(fd, data.a.handle) == 0);
  // The rest goes with the open.
}

}  // namespace kmod
