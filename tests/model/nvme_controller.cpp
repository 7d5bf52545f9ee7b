// SPDX-License-Identifier: MIT
// The model is strict: commands that are right but for one thing, and the status that the specifications give them.
#include "nvme_rig.hpp"

using namespace xio;
using namespace xio::test;
namespace w = xio::wire::nvme;

namespace {

bool soon(const std::function<bool()>& condition) {
  for (int i = 0; i < 5000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// One raw I/O queue pair of 8 entries, and an admin queue of 16, driven by hand.
class bench : public nvme::bus {
 public:
  static constexpr std::uint32_t k_entries = 8;

  explicit bench(std::uint32_t flags = 0) : file_bytes_(stamped_data(1 << 20)) {
    scratch_.write(file_bytes_);
    xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
    attr.flags = flags;
    file_ = std::make_unique<model::nvme::file>(scratch_.path, attr);
    bar_ = gpu::buffer(model::nvme::controller::bar_bytes(shape_), gpu::place::shared, 4096);
    device_ = std::make_unique<model::nvme::controller>(bar_.data(), shape_, *file_, gpu::payload());
    machine_.add(device_.get());
    drive_ = std::make_unique<nvme::drive>("the drive", bar_.data(), *this, std::chrono::milliseconds(5000));
    drive_->request_queues(2);
    sq_ = std::make_unique<nvme::drive_memory>(*this, k_entries * 64);
    cq_ = std::make_unique<nvme::drive_memory>(*this, k_entries * 16);
    data_ = std::make_unique<nvme::drive_memory>(*this, 4 << 20);
    drive_->create_queues(1, sq_->address(), k_entries, cq_->address(), k_entries);
  }
  ~bench() override {
    drive_.reset();
    sq_.reset();
    cq_.reset();
    data_.reset();
    machine_.remove(device_.get());
  }

  std::uint64_t map_queue(void* base, std::size_t bytes) override {
    return device_->dma().add(base, bytes, model::nvme::dma_map::memory::host);
  }
  void unmap_queue(void* base, std::size_t) override { device_->dma().remove(base); }

  void put(const w::sqe& command) {
    sq_->as<w::sqe>()[tail_] = command;
    tail_ = (tail_ + 1) % k_entries;
  }
  void ring() { __atomic_store_n(drive_->sq_doorbell(1), tail_, __ATOMIC_RELEASE); }
  void ring_with(std::uint32_t value) { __atomic_store_n(drive_->sq_doorbell(1), value, __ATOMIC_RELEASE); }

  // The next completion, or one of all ones after 2 s.
  w::cqe next() {
    auto* e = cq_->as<w::cqe>() + head_;
    for (int i = 0; i < 20000; ++i) {
      if (w::cqe_phase(__atomic_load_n(&e->dw[3], __ATOMIC_ACQUIRE)) == phase_) {
        const w::cqe out = *e;
        head_ = (head_ + 1) % k_entries;
        if (head_ == 0) phase_ ^= 1;
        return out;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return w::cqe{{~0u, ~0u, ~0u, ~0u}};
  }
  void consume() { __atomic_store_n(drive_->cq_doorbell(1), head_, __ATOMIC_RELEASE); }
  bool nothing_comes() {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    return w::cqe_phase(__atomic_load_n(&cq_->as<w::cqe>()[head_].dw[3], __ATOMIC_ACQUIRE)) != phase_;
  }
  // SCT<<8 | SC
  std::uint32_t run(const w::sqe& command) {
    put(command);
    ring();
    const w::cqe e = next();
    consume();
    EXPECT_EQ(w::cqe_cid(e.dw[3]), w::cid_of(command));
    return w::status_code(w::cqe_status(e.dw[3]));
  }
  w::sqe read(std::uint64_t lba, std::uint32_t blocks, std::uint64_t prp1, std::uint64_t prp2) {
    return w::make_io(w::opcode::read, cid_++, 1, prp1, prp2, lba, blocks);
  }
  std::uint64_t bus() const { return data_->address(); }
  unsigned char* data() const { return data_->as<unsigned char>(); }
  model::nvme::controller& device() { return *device_; }
  nvme::drive& drive() { return *drive_; }
  std::uint32_t csts() const { return __atomic_load_n(bar_.as<std::uint32_t>() + 0x1c / 4, __ATOMIC_ACQUIRE); }
  unsigned char* bar() const { return bar_.as<unsigned char>(); }
  std::uint64_t sq_bus() const { return sq_->address(); }

 private:
  scratch_file scratch_;
  std::vector<unsigned char> file_bytes_;
  model::nvme::shape shape_{64 << 10, 64, 2, 0, false};
  std::unique_ptr<model::nvme::file> file_;
  gpu::buffer bar_;
  progress::machine machine_{1};
  std::unique_ptr<model::nvme::controller> device_;
  std::unique_ptr<nvme::drive> drive_;
  std::unique_ptr<nvme::drive_memory> sq_, cq_, data_;
  std::uint32_t tail_ = 0, head_ = 0, phase_ = 1, cid_ = 100;
};

}  // namespace

TEST(nvme_controller, says_what_it_is) {
  bench b;
  const auto& f = b.drive().facts();
  EXPECT_PAIRS((f.block_bytes, 512u), (f.blocks, 2048u), (f.transfer_bytes, 65536u), (f.max_entries, 64u),
               (f.nsid, 1u));
  EXPECT_TRUE(f.write_cache);
  EXPECT_FALSE(f.read_only);
}

TEST(nvme_controller, right_commands) {
  bench b;
  const std::uint64_t p = b.bus();
  EXPECT_EQ(b.run(b.read(8, 8, p, 0)), 0u);
  EXPECT_TRUE(stamped(b.data(), 4096, 4096));
  EXPECT_EQ(b.run(b.read(8, 16, p, p + 16384)), 0u);  // second page elsewhere
  EXPECT_TRUE(stamped(b.data() + 16384, 8192, 4096));
  // Three pages out of order through a list.
  auto* list = reinterpret_cast<std::uint64_t*>(b.data() + (1 << 20));
  list[0] = p + 8 * 4096;
  list[1] = p + 2 * 4096;
  EXPECT_EQ(b.run(b.read(0, 24, p, p + (1 << 20))), 0u);
  EXPECT_TRUE(stamped(b.data() + 8 * 4096, 4096, 4096));
  EXPECT_TRUE(stamped(b.data() + 2 * 4096, 8192, 4096));
  // The same from the last two entries of a list page, the second of them chaining.
  auto* first = reinterpret_cast<std::uint64_t*>(b.data() + (1 << 20) + 4080);
  first[0] = p + 4096;
  first[1] = p + (2 << 20);
  auto* second = reinterpret_cast<std::uint64_t*>(b.data() + (2 << 20));
  second[0] = p + 12 * 4096;
  second[1] = p + 13 * 4096;
  EXPECT_EQ(b.run(b.read(16, 32, p, p + (1 << 20) + 4080)), 0u);
  EXPECT_TRUE(stamped(b.data() + 12 * 4096, 8192 + 8192, 4096));
  EXPECT_TRUE(stamped(b.data() + 13 * 4096, 8192 + 12288, 4096));
}

TEST(nvme_controller, one_thing_wrong) {
  bench b;
  const std::uint64_t p = b.bus();
  struct wrong {
    const char* what;
    std::uint32_t status;
    std::function<void(w::sqe&)> spoil;
  };
  const wrong all[] = {
      {"opcode", 0x001, [](w::sqe& e) { e.dw[0] = (e.dw[0] & ~0xffu) | 0x7f; }},
      {"of bytes, which this drive does not know", 0x001, [](w::sqe& e) { e = w::of_bytes(e, 0, 8192); }},
      {"fused", 0x002, [](w::sqe& e) { e.dw[0] |= 1 << 8; }},
      {"PSDT 11b", 0x002, [](w::sqe& e) { e.dw[0] |= 3 << 14; }},
      {"reserved bit of dw12", 0x002, [](w::sqe& e) { e.dw[12] |= 1 << 25; }},
      {"reserved bit of dw13", 0x002, [](w::sqe& e) { e.dw[13] |= 1 << 8; }},
      {"reserved bit of dw0", 0x002, [](w::sqe& e) { e.dw[0] |= 1 << 11; }},
      {"reserved dw2", 0x002, [](w::sqe& e) { e.dw[2] = 1; }},
      {"metadata pointer", 0x002, [](w::sqe& e) { e.dw[4] = 8; }},
      {"namespace 0", 0x00b, [](w::sqe& e) { e.dw[1] = 0; }},
      {"namespace 2", 0x00b, [](w::sqe& e) { e.dw[1] = 2; }},
      {"broadcast read", 0x00b, [](w::sqe& e) { e.dw[1] = 0xffffffff; }},
      {"PRP1 not a dword", 0x013, [](w::sqe& e) { e.dw[6] |= 2; }},
      {"PRP2 with an offset", 0x013, [](w::sqe& e) { e.dw[8] |= 4; }},
      {"PRP1 unmapped", 0x004, [](w::sqe& e) { e.dw[7] = 0; }},
      {"PRP2 unmapped", 0x004, [](w::sqe& e) { e.dw[9] ^= 1; }},
      {"PRP2 missing", 0x004, [](w::sqe& e) { e.dw[8] = e.dw[9] = 0; }},
      {"PRP2 not needed", 0x002, [](w::sqe& e) { e.dw[12] = 7; }},
      {"first block out of range", 0x080, [](w::sqe& e) { e.dw[10] = 2048; }},
      {"last block out of range", 0x080, [](w::sqe& e) { e.dw[10] = 2048 - 15; }},
      {"high half of the LBA", 0x080, [](w::sqe& e) { e.dw[11] = 1; }},
      {"more than MDTS", 0x002, [](w::sqe& e) { e.dw[12] = 128; }},
  };
  for (const wrong& x : all) {
    std::memset(b.data(), 0xee, 65536);
    w::sqe e = b.read(0, 16, p, p + 4096);
    x.spoil(e);
    EXPECT_EQ(b.run(e), x.status) << x.what;
    for (int i = 0; i < 4096; ++i) ASSERT_EQ(b.data()[i], 0xee) << x.what;
  }
  EXPECT_EQ(b.run(b.read(0, 16, p, p + 4096)), 0u);
}

TEST(nvme_controller, one_thing_wrong_in_a_list) {
  bench b;
  const std::uint64_t p = b.bus();
  const std::uint64_t at = p + (1 << 20);
  auto* list = reinterpret_cast<std::uint64_t*>(b.data() + (1 << 20));
  const auto with = [&](std::uint64_t one, std::uint64_t two, std::uint64_t pointer) {
    list[0] = one;
    list[1] = two;
    return b.run(b.read(0, 24, p, pointer));
  };
  EXPECT_PAIRS((with(p + 4096, p + 8192, at), 0u), (with(p + 4100, p + 8192, at), 0x013u),
               (with(p + 4096, p + 8192 + 512, at), 0x013u), (with(p + 4096, 0, at), 0x004u),
               (with(p + 4096, p + 8192, at + 4), 0x013u), (with(p + 4096, p + 8192, 0x1000), 0x004u));
  // A process address is no bus address.
  EXPECT_EQ(with(reinterpret_cast<std::uint64_t>(b.data()), p, at), 0x004u);
}

TEST(nvme_controller, command_ids_must_differ) {
  bench b;
  b.device().inject({.what = model::nvme::fault::kind::hold});
  w::sqe e = w::make_io(w::opcode::read, 7, 1, b.bus(), 0, 0, 1);
  b.put(e);
  b.put(e);
  b.ring();
  const w::cqe conflict = b.next();
  EXPECT_EQ(w::status_code(w::cqe_status(conflict.dw[3])), 0x003u);
  b.device().release();
  const w::cqe first = b.next();
  EXPECT_EQ(w::status_code(w::cqe_status(first.dw[3])), 0u);
  b.consume();
  EXPECT_EQ(b.run(e), 0u);
}

TEST(nvme_controller, doorbells_must_make_sense) {
  bench b;
  b.ring_with(8);  // one past the last
  EXPECT_TRUE(soon([&] { return b.device().invalid_doorbells() == 1; }));
  b.ring_with(0x10000);
  EXPECT_TRUE(soon([&] { return b.device().invalid_doorbells() == 2; }));
  EXPECT_TRUE(b.nothing_comes());
  // Seven commands whose completions are not taken fill the CQ; the eighth would overrun nothing yet.
  for (std::uint32_t i = 0; i < 7; ++i) b.put(w::make_io(w::opcode::read, i, 1, b.bus(), 0, i, 1));
  b.ring();
  for (std::uint32_t i = 0; i < 7; ++i) EXPECT_NE(b.next().dw[0], ~0u);
  // A CQ head beyond what was posted.
  __atomic_store_n(b.drive().cq_doorbell(1), 0u, __ATOMIC_RELEASE);
  b.put(w::make_io(w::opcode::read, 9, 1, b.bus(), 0, 0, 1));
  b.ring();
  EXPECT_TRUE(b.nothing_comes());  // the CQ is full, so the drive waits and loses nothing
  b.consume();
  EXPECT_EQ(w::cqe_cid(b.next().dw[3]), 9);
  b.consume();
  const std::uint64_t before = b.device().invalid_doorbells();
  __atomic_store_n(b.drive().cq_doorbell(1), 5u, __ATOMIC_RELEASE);
  EXPECT_TRUE(soon([&] { return b.device().invalid_doorbells() == before + 1; }));
}

// More new entries than are free: three are in flight of which no completion has told that they were fetched.
TEST(nvme_controller, a_tail_must_not_overrun) {
  bench b;
  const std::uint64_t before = b.device().commands();
  b.device().inject({.what = model::nvme::fault::kind::hold, .times = 3});
  for (std::uint32_t i = 0; i < 3; ++i) b.put(w::make_io(w::opcode::read, i, 1, b.bus(), 0, i, 1));
  b.ring();
  ASSERT_TRUE(soon([&] { return b.device().commands() == before + 3; }));
  b.ring_with(0);  // five more than the three: one too many
  EXPECT_TRUE(soon([&] { return b.device().invalid_doorbells() == 1; }));
  b.device().release();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(w::status_code(w::cqe_status(b.next().dw[3])), 0u);
}

TEST(nvme_controller, writes_zeroes_and_flushes) {
  bench b;
  EXPECT_EQ(b.run(w::make_io(w::opcode::write_zeroes, 1, 1, 0, 0, 8, 8)), 0u);
  EXPECT_EQ(b.run(b.read(0, 16, b.bus(), b.bus() + 4096)), 0u);
  EXPECT_TRUE(stamped(b.data(), 0, 4096));
  for (int i = 4096; i < 8192; ++i) ASSERT_EQ(b.data()[i], 0);
  EXPECT_PAIRS((b.run(w::make_io(w::opcode::write_zeroes, 1, 1, 0, 0, 2047, 2)), 0x080u),
               (b.run(w::make_command(0x00, 3, 1, 0, 0)), 0u), (b.run(w::make_command(0x00, 4, 0xffffffff, 0, 0)), 0u));
}

TEST(nvme_controller, read_only_is_write_protected) {
  bench b(XIO_STORAGE_READ_ONLY);
  EXPECT_TRUE(b.drive().facts().read_only);
  EXPECT_EQ(b.run(w::make_io(w::opcode::write, 1, 1, b.bus(), 0, 0, 1)), 0x020u);
  EXPECT_EQ(b.run(b.read(0, 1, b.bus(), 0)), 0u);
}

// A namespace opens only if the drive's description of it fits the attributes.
TEST(nvme_controller, namespaces_must_fit_what_is_asked) {
  bench b(XIO_STORAGE_READ_ONLY);
  const auto sentence = [&](std::uint32_t flags, std::uint64_t bytes, std::uint32_t block) {
    xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
    attr.flags = flags;
    attr.bytes = bytes;
    attr.block_bytes = block;
    return refusal([&] { nvme::check_namespace(b.drive().facts(), attr, "nvme:x/1"); });
  };
  EXPECT_PAIRS((sentence(XIO_STORAGE_READ_ONLY, 0, 0), ""), (sentence(XIO_STORAGE_READ_ONLY, 1 << 20, 512), ""));
  EXPECT_EQ(sentence(0, 0, 0),
            "cannot open nvme:x/1: the namespace is write protected; open it with XIO_STORAGE_READ_ONLY");
  EXPECT_EQ(
      sentence(XIO_STORAGE_READ_ONLY, (1 << 20) + 1, 0),
      "cannot open nvme:x/1: it has 1048576 bytes and 1048577 were asked for; ask for less, or use a larger drive");
  EXPECT_EQ(sentence(XIO_STORAGE_READ_ONLY, 0, 4096),
            "cannot open nvme:x/1: its blocks have 512 bytes and not 4096; ask for 0 or for what it has");
  EXPECT_EQ(sentence(XIO_STORAGE_READ_ONLY | XIO_STORAGE_CREATE, 0, 0),
            "cannot open nvme:x/1: only files are created or emptied; leave both flags out");
}

TEST(nvme_controller, queues_must_make_sense) {
  bench b;
  nvme::drive_memory more(b, 8192);
  const std::uint64_t q = more.address();
  const struct {
    std::uint32_t qid;
    std::uint64_t sq, cq;
    std::uint32_t cq_entries;
    const char *why, *status;
  } rows[] = {{1, q, q, 8, "it exists", "(status 0x101"},
              {3, q, q, 8, "not granted", "(status 0x101"},
              {0, q, q, 8, "the admin queue", "(status 0x101"},
              {2, q, q, 65, "beyond MQES", "(status 0x102"},
              {2, q, q + 64, 8, "not page aligned", "(status 0x13"},
              {2, q, 0x1000, 8, "not mapped", "(status 0x4)"},
              {2, q + 4, q, 8, "CQ made, SQ not", "(status 0x13"}};
  for (const auto& r : rows) {
    SCOPED_TRACE(r.why);
    expect_words(refusal([&] { b.drive().create_queues(r.qid, r.sq, 8, r.cq, r.cq_entries); }), {r.status});
  }
  b.drive().delete_queues(1);
  EXPECT_EQ(b.csts(), w::k_csts_rdy);
  // A drive that does not say that a queue is gone is stopped as a whole: its memory is about to be.
  b.drive().delete_queues(1);
  EXPECT_EQ(b.csts(), 0u);
}

// Deleting a queue ends what it holds; a reset brings everything back to the start.
TEST(nvme_controller, deletes_and_resets) {
  bench b;
  b.device().inject({.what = model::nvme::fault::kind::hold});
  b.put(b.read(0, 1, b.bus(), 0));
  b.ring();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  b.drive().delete_queues(1);
  b.device().release();
  EXPECT_TRUE(b.nothing_comes());
  const auto expect_csts = [&](std::uint32_t cc, std::uint32_t csts) {
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(b.bar() + 0x14), cc, __ATOMIC_RELEASE);
    EXPECT_TRUE(soon([&] { return b.csts() == csts; })) << csts;
  };
  expect_csts(0, 0);
  // An admin queue that is nowhere is fatal, and a reset cures it.
  auto* asq = reinterpret_cast<std::uint64_t*>(b.bar() + 0x28);
  const std::uint64_t right = *asq;
  *asq = 0x1000;
  expect_csts(0x00460001, 2);
  expect_csts(0, 0);
  *asq = right;
  expect_csts(0x00460001, 1);
}

TEST(nvme_controller, plain_calls_do_what_io_uring_does) {
  scratch_file f;
  f.write(stamped_data(65536));
  xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
  model::nvme::file file(f.path, attr);
  for (const bool plain : {true, false}) {
    const auto engine = plain ? model::nvme::make_plain_engine(file.fd()) : model::nvme::make_file_engine(file.fd());
    std::vector<unsigned char> one(4096), two(8192, 0xee);
    model::nvme::file_job job{};
    job.what = model::nvme::file_job::kind::read;
    job.offset = 65536 - 8192;
    job.parts = {{one.data(), one.size()}, {two.data(), two.size()}};
    engine->start(job);
    engine->kick();
    std::vector<model::nvme::file_job*> done;
    for (int i = 0; i < 5000 && done.empty(); ++i) {
      engine->reap(done);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_EQ(done.size(), 1u) << engine->name();
    EXPECT_EQ(job.error, EIO) << engine->name();  // there is no more
    EXPECT_TRUE(stamped(one.data(), 65536 - 8192, 4096)) << engine->name();
    EXPECT_TRUE(stamped(two.data(), 65536 - 4096, 4096)) << engine->name();
  }
}

// XIO_MODEL_FAULTS reaches the drive of a file, and a mistake in it is found before the file is touched.
TEST(nvme_controller, faults_asked_for_by_text) {
  scratch_file f;
  f.write(stamped_data(65536));
  progress::machine machine(1);
  options o = options::defaults();
  xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
  attr.flags = XIO_STORAGE_TRUNCATE;
  o.model_faults = "nvme_oops@1";
  EXPECT_THROW(nvme::file_controller(*software::built_in(), f.path, attr, o, machine, gpu::payload()), error);
  EXPECT_EQ(f.size(), 65536u);
  attr.flags = 0;
  o.model_faults = "nvme_error@0=0x286/flush";
  nvme::file_controller drive(*software::built_in(), f.path, attr, o, machine, gpu::payload());
  const dev::ring_view q = drive.queue_view(0);
  const w::sqe flush = w::make_command(0x00, 1, 1, 0, 0);
  std::memcpy(q.slots, &flush, sizeof flush);
  __atomic_store_n(q.nvme.sq_doorbell, 1u, __ATOMIC_RELEASE);
  const auto* dw3 = reinterpret_cast<const std::uint32_t*>(q.nvme.completions) + 3;
  EXPECT_TRUE(soon([&] { return w::cqe_phase(__atomic_load_n(dw3, __ATOMIC_ACQUIRE)) == 1; }));
  EXPECT_EQ(w::status_code(w::cqe_status(__atomic_load_n(dw3, __ATOMIC_ACQUIRE))), 0x286u);
}
