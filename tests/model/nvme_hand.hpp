// SPDX-License-Identifier: MIT
// The software drive driven by hand: registers, queues and shadows written one by one, and the drive polled by the test
// itself, so that nothing happens that was not asked for.
#pragma once
#include "model/nvme/controller.hpp"
#include "model/nvme/file_library.hpp"
#include "scratch_file.hpp"

namespace xio::test {

class hand {
 public:
  static constexpr std::uint64_t k_data = 1 << 20;  // where data begin in memory()
  static constexpr std::uint64_t k_bytes = 16 << 20;
  static constexpr std::uint32_t k_entries = 8;

  struct how {
    model::nvme::shape shape{};
    std::uint32_t flags = 0;
    std::uint64_t file_bytes = 1 << 20;
    std::uint32_t block = 512;
    bool direct = true;        // the file may read and write the data itself
    bool in_the_host = false;  // or so it may these, though not all that the agent reaches
    void (*copy)(void*, const void*, std::size_t) = [](void* to, const void* from, std::size_t n) {
      std::memcpy(to, from, n);
    };
    model::nvme::library_choice library = {};
    bool enabled = true;
    std::uint32_t cc = 0x00460001;  // EN, IOSQES 6, IOCQES 4
  };

  hand() : hand(how{}) {}
  explicit hand(const how& h) : shape_(h.shape) {
    scratch_.write(stamped_data(h.file_bytes));
    xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
    attr.flags = h.flags;
    attr.block_bytes = h.block;
    file_ = std::make_unique<model::nvme::file>(scratch_.path, attr);
    file_->commit();
    memory_.reset(static_cast<unsigned char*>(aligned_alloc(65536, k_bytes)));
    std::memset(memory_.get(), 0, k_bytes);
    const std::size_t bar_bytes = (model::nvme::controller::bar_bytes(shape_) + 4095) / 4096 * 4096;
    bar_.reset(static_cast<unsigned char*>(aligned_alloc(4096, bar_bytes)));
    std::memset(bar_.get(), 0, bar_bytes);
    agent_.copy = h.copy;
    agent_.fence = [] {};  // the completion is a release already
    agent_.direct = h.direct;
    std::string ignored;
    const bool plain = h.library.file.empty() && (h.flags & XIO_STORAGE_DIRECT) == 0;
    auto engine = plain ? nullptr : choose_file_engine(h.library, *file_, agent_, {}, ignored);
    device_ = std::make_unique<model::nvme::controller>(bar_.get(), shape_, *file_, agent_, std::move(engine));
    // Queues and lists are host memory. Data are not, when they go through a copy.
    device_->dma().add(memory_.get(), h.direct ? k_bytes : k_data, model::nvme::dma_map::memory::host);
    using memory = model::nvme::dma_map::memory;
    if (!h.direct)
      device_->dma().add(memory_.get() + k_data, k_bytes - k_data,
                         h.in_the_host ? memory::in_the_host : memory::payload);
    if (!h.direct && !h.in_the_host) device_->engine().lend(data(), k_bytes - k_data);
    if (h.enabled) enable(h.cc);
  }

  ~hand() { device_->engine().take_back(data()); }
  hand& operator=(hand&&) = delete;

  // --- registers ---
  std::uint32_t* reg(std::uint32_t offset) const { return reinterpret_cast<std::uint32_t*>(bar_.get() + offset); }
  std::uint32_t csts() const { return *reg(0x1c); }
  void write64(std::uint32_t offset, std::uint64_t value) const { std::memcpy(bar_.get() + offset, &value, 8); }
  std::uint64_t read64(std::uint32_t offset) const {
    std::uint64_t value;
    std::memcpy(&value, bar_.get() + offset, 8);
    return value;
  }
  void enable(std::uint32_t cc) {
    *reg(0x24) = 0x000f000f;  // 16 entries each
    write64(0x28, bus());
    write64(0x30, bus() + 0x10000);
    std::memset(memory_.get(), 0, 0x20000);
    admin_ = {0, 16, 0, 0, 1, memory_.get(), memory_.get() + 0x10000};
    *reg(0x14) = cc;
    turn();
  }
  void reset() {
    *reg(0x14) = 0;
    ASSERT_TRUE(until([&] { return csts() == 0; }));
  }

  void restart() {
    reset();
    enable(0x00460001);
  }

  // --- the drive's turns ---
  void turn(int n = 1) {
    for (int i = 0; i < n; ++i) device_->poll();
  }
  bool until(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      turn();
    }
    return true;
  }

  // --- queues ---
  struct pair {
    std::uint32_t id = 0, entries = 0, tail = 0, head = 0, phase = 1;
    unsigned char* sq = nullptr;
    unsigned char* cq = nullptr;
  };
  void put(pair& q, const wire::nvme::sqe& command) {
    std::memcpy(q.sq + std::size_t{q.tail} * 64, &command, 64);
    q.tail = (q.tail + 1) % q.entries;
  }
  std::uint32_t* tail_doorbell(const pair& q) const {
    return reg(wire::nvme::sq_tail_doorbell(q.id, shape_.doorbell_stride));
  }
  std::uint32_t* head_doorbell(const pair& q) const {
    return reg(wire::nvme::cq_head_doorbell(q.id, shape_.doorbell_stride));
  }
  void ring(const pair& q) { *tail_doorbell(q) = q.tail; }
  void consume(const pair& q) { *head_doorbell(q) = q.head; }
  bool ready(const pair& q) const {
    wire::nvme::cqe e;
    std::memcpy(&e, q.cq + std::size_t{q.head} * 16, 16);
    return wire::nvme::cqe_phase(e.dw[3]) == q.phase;
  }
  // All ones when nothing comes.
  wire::nvme::cqe next(pair& q) {
    wire::nvme::cqe e{{~0u, ~0u, ~0u, ~0u}};
    if (!until([&] { return ready(q); })) return e;
    std::memcpy(&e, q.cq + std::size_t{q.head} * 16, 16);
    q.head = (q.head + 1) % q.entries;
    if (q.head == 0) q.phase ^= 1;
    return e;
  }
  wire::nvme::cqe run(pair& q, wire::nvme::sqe command) {
    const std::uint32_t cid = cid_++ & 0xfff;
    command.dw[0] = (command.dw[0] & 0xffff) | cid << 16;
    put(q, command);
    ring(q);
    const wire::nvme::cqe e = next(q);
    consume(q);
    turn();
    EXPECT_EQ(wire::nvme::cqe_cid(e.dw[3]), cid);
    return e;
  }
  static std::uint32_t status(const wire::nvme::cqe& e) {
    return wire::nvme::status_code(wire::nvme::cqe_status(e.dw[3]));
  }
  // SCT<<8 | SC
  std::uint32_t admin(const wire::nvme::sqe& command) { return status(run(admin_, command)); }
  std::uint32_t io(const wire::nvme::sqe& command) { return status(run(io_, command)); }

  // Queue pair 1 at 0x40000 and 0x50000 of the memory.
  void make_queues(std::uint32_t entries = k_entries) {
    using namespace wire::nvme;
    ASSERT_EQ(admin(make_set_features(feature::number_of_queues, make_queue_counts(2, 2))), 0u);
    ASSERT_EQ(admin(make_create_cq(1, entries, bus() + 0x50000)), 0u);
    ASSERT_EQ(admin(make_create_sq(1, entries, bus() + 0x40000, 1)), 0u);
    std::memset(memory_.get() + 0x40000, 0, 0x20000);
    io_ = {1, entries, 0, 0, 1, memory_.get() + 0x40000, memory_.get() + 0x50000};
  }

  std::uint64_t bus(std::uint64_t at = 0) const {
    return reinterpret_cast<std::uint64_t>(memory_.get()) + model::nvme::dma_map::k_bus_offset + at;
  }
  std::uint64_t data_bus(std::uint64_t at = 0) const { return bus(k_data + at); }
  unsigned char* memory() const { return memory_.get(); }
  unsigned char* data() const { return memory_.get() + k_data; }
  model::nvme::controller& device() { return *device_; }
  scratch_file& file() { return scratch_; }
  pair& admin_queue() { return admin_; }
  pair& io_queue() { return io_; }
  // A part of the 4 KiB that Identify wrote to the data.
  template <class T>
  T identified(std::uint32_t offset) const {
    T value;
    std::memcpy(&value, data() + offset, sizeof value);
    return value;
  }

 private:
  struct freed {
    void operator()(unsigned char* p) const { free(p); }
  };
  model::nvme::shape shape_;
  scratch_file scratch_;
  std::unique_ptr<unsigned char, freed> memory_;
  std::unique_ptr<unsigned char, freed> bar_;
  payload_agent agent_{};
  std::unique_ptr<model::nvme::file> file_;
  std::unique_ptr<model::nvme::controller> device_;
  pair admin_, io_;
  std::uint32_t cid_ = 1;
};

// The same with queue pair 1.
struct ready_hand : hand {
  explicit ready_hand(const how& h = {}) : hand(h) { make_queues(); }
};

}  // namespace xio::test
