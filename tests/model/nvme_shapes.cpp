// SPDX-License-Identifier: MIT
// Drives of other shapes than the file controller's own, set up and driven as any drive: what Identify and CAP say is
// honoured, and what XIO cannot do with a drive is one sentence.
#include "nvme_rig.hpp"

using namespace xio;
using namespace xio::test;

namespace {

// A drive of any shape over a stamped file of 1 MiB, brought up as src/transport/nvme does it.
class any_drive : public nvme::bus {
 public:
  explicit any_drive(const model::nvme::shape& s, std::uint32_t flags = 0) {
    scratch_.write(stamped_data(1 << 20));
    xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
    attr.flags = flags;
    file_ = std::make_unique<model::nvme::file>(scratch_.path, attr);
    bar_ = gpu::buffer(model::nvme::controller::bar_bytes(s), gpu::place::shared, 4096);
    device_ = std::make_unique<model::nvme::controller>(bar_.data(), s, *file_, gpu::payload());
    machine_.add(device_.get());
  }
  ~any_drive() override {
    queues_.reset();
    drive_.reset();
    machine_.remove(device_.get());
  }
  any_drive& operator=(any_drive&&) = delete;

  nvme::drive& bring_up(std::uint32_t nsid = 0) {
    drive_.reset();
    drive_ = std::make_unique<nvme::drive>("nvme:x", bar_.data(), *this, std::chrono::milliseconds(5000), nsid);
    return *drive_;
  }
  nvme::queue_set& make_queues(std::uint32_t depth, std::uint32_t queues, std::uint32_t last = 0) {
    options o = options::defaults();
    o.nvme_queue_id = last;
    xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
    attr.depth = depth;
    attr.queues = queues;
    const nvme::doorbell_reach can{bar_.data(), 0, bar_.data(), true};
    queues_ = std::make_unique<nvme::queue_set>(*drive_, attr, o, machine_, can, memory::ring_places{});
    return *queues_;
  }
  model::nvme::controller& device() { return *device_; }
  std::uint32_t csts() const { return __atomic_load_n(bar_.as<std::uint32_t>() + 0x1c / 4, __ATOMIC_ACQUIRE); }

  std::uint64_t map_queue(void* base, std::size_t bytes) override {
    return device_->dma().add(base, bytes, model::nvme::dma_map::memory::host);
  }
  void unmap_queue(void* base, std::size_t) override { device_->dma().remove(base); }

 private:
  scratch_file scratch_;
  std::unique_ptr<model::nvme::file> file_;
  gpu::buffer bar_;
  progress::machine machine_{1};
  std::unique_ptr<model::nvme::controller> device_;
  std::unique_ptr<nvme::drive> drive_;
  std::unique_ptr<nvme::queue_set> queues_;
};

// Reads all of the drive's first 64 KiB by commands of 4 KiB, several laps of the queue.
void read_through(any_drive& d, nvme::queue_set& queues) {
  gpu::buffer heap(64 << 10, gpu::place::shared, 4096);
  const std::uint64_t bus = d.device().dma().add(heap.data(), heap.size(), model::nvme::dma_map::memory::payload);
  auto world = std::make_unique<dev::world_view>();
  world->n_pes = 1;
  world->ticks_per_ms = gpu::ticks_per_ms();
  world->timeout_ticks = 10000 * world->ticks_per_ms;
  world->regions[0] = {reinterpret_cast<std::uint64_t>(heap.data()), heap.size(), {bus, 0}, {}, 1, 0, 0, {}, {}};
  std::vector<dev::ring_view> rings;
  for (std::uint32_t q = 0; q < queues.count(); ++q) {
    rings.push_back(queues.queue_view(q));
    rings.back().index = dev::k_storage_ring_base + q;
  }
  world->storages[0] = queues.view();
  world->storages[0].queues = rings.data();
  dev::ctx_view view{};
  view.world = world.get();
  const dev::peer_view none{};
  const xio_ctx_t ctx = ctx_value(&view, 1, view, *world, &none);
  for (int round = 0; round < 12; ++round) {
    std::memset(heap.data(), 0, heap.size());
    for (std::uint64_t at = 0; at < heap.size(); at += 4096)
      (void)xio_read_nbi(ctx, heap.as<unsigned char>() + at, {&world->storages[0], 1}, at, 4096);
    ASSERT_EQ(dev::storage_quiet(view), XIO_OK) << round;
    ASSERT_TRUE(stamped(heap.data(), 0, heap.size())) << round;
  }
  EXPECT_EQ(d.device().invalid_doorbells(), 0u);
  d.device().dma().remove(heap.data());
}

// As a lane left it.
const std::uint32_t* first_entry(nvme::queue_set& queues) {
  return reinterpret_cast<const std::uint32_t*>(queues.queue_view(0).slots);
}

}  // namespace

// CAP.MQES bounds both queues; where the completion queue cannot be twice as long it is as long as it may be.
TEST(nvme_shapes, short_queues) {
  const struct {
    std::uint32_t most, depth, cq_depth;
  } cases[] = {{4, 4, 4}, {5, 4, 4}, {7, 4, 4}, {8, 4, 8}, {16, 16, 16}, {31, 16, 16}, {32, 16, 32}};
  for (const auto& c : cases) {
    any_drive d({.max_entries = c.most});
    EXPECT_EQ(d.bring_up().facts().max_entries, c.most);
    nvme::queue_set& queues = d.make_queues(c.depth, 1);
    EXPECT_EQ(queues.queue_view(0).nvme.cq_depth, c.cq_depth) << c.most;
    read_through(d, queues);
  }
}

TEST(nvme_shapes, queues_beyond_mqes) {
  for (const std::uint32_t most : {2u, 3u, 16u, 31u}) {
    any_drive d({.max_entries = most});
    d.bring_up();
    expect_words(refusal(XIO_ERR_ARG, [&] { d.make_queues(32, 1); }), {"at most", "CAP.MQES", "set a smaller depth"});
  }
}

// Somebody drains while the drive is lost: the ticket that failed is the count alone.
TEST(nvme_shapes, a_queue_fails_at_what_is_complete) {
  any_drive d({});
  d.bring_up();
  nvme::queue_set& queues = d.make_queues(16, 1);
  dev::ring_state& state = *queues.queue_view(0).state;
  const std::uint64_t completed = state.completed;
  state.completed |= dev::k_reaping;
  queues.fail(XIO_ERR_TRANSPORT, 3);
  EXPECT_PAIRS((static_cast<int>(state.failed), XIO_ERR_TRANSPORT), (state.vendor, 3u),
               (state.failed_ticket, completed));
  state.completed = completed;
}

TEST(nvme_shapes, fewer_queues_than_asked_for) {
  any_drive d({.max_queues = 3});
  d.bring_up();
  nvme::queue_set& queues = d.make_queues(16, 8);
  EXPECT_PAIRS((queues.count(), 3u), (queues.view().member_queues, 3u));
  read_through(d, queues);
}

// XIO_NVME_QUEUE_ID
TEST(nvme_shapes, queues_that_end_at_an_identifier) {
  any_drive d({.max_queues = 9});
  d.bring_up();
  nvme::queue_set& queues = d.make_queues(16, 3, 7);
  ASSERT_EQ(queues.count(), 3u);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(queues.queue_view(i).id, 5 + i);
  read_through(d, queues);
  EXPECT_EQ(d.device().invalid_doorbells(), 0u);
  any_drive few({.max_queues = 3});
  few.bring_up();
  expect_words(refusal(XIO_ERR_ARG, [&] { few.make_queues(16, 1, 4); }), {"has no I/O queue 4: it gives 3"});
  expect_words(refusal(XIO_ERR_ARG, [&] { few.make_queues(16, 3, 2); }), {"3 queues cannot end at identifier 2"});
}

TEST(nvme_shapes, strides_and_limits) {
  any_drive d({.mdts_bytes = 16 << 10, .doorbell_stride = 5});
  const nvme::drive_facts& f = d.bring_up().facts();
  EXPECT_PAIRS((f.stride, 5u), (f.transfer_bytes, 16u << 10));
  read_through(d, d.make_queues(16, 2));
  any_drive any({.mdts_bytes = 0});
  EXPECT_EQ(any.bring_up().facts().transfer_bytes, nvme::k_most_transfer);
}

// ONCS, VWC, SGLS, OACS.
TEST(nvme_shapes, abilities) {
  any_drive none({.write_cache = false, .compare = false, .write_zeroes = false, .sgls = 0, .doorbell_buffers = false});
  const nvme::drive_facts& f = none.bring_up().facts();
  EXPECT_FALSE(f.compares || f.zeroes || f.sgls || f.shadow_doorbells || f.write_cache);
  nvme::queue_set& queues = none.make_queues(16, 1);
  EXPECT_EQ(queues.view().features, 0u);
  EXPECT_NE(queues.queue_view(0).nvme.list_pages, nullptr);
  read_through(none, queues);
  EXPECT_EQ(first_entry(queues)[0] >> 14 & 3, 0u);
  any_drive compares({.write_zeroes = false, .sgls = 2});
  EXPECT_TRUE(compares.bring_up().facts().write_cache);
  nvme::queue_set& by_sgl = compares.make_queues(16, 1);
  EXPECT_PAIRS((by_sgl.view().features, dev::storage_compares), (by_sgl.queue_view(0).nvme.list_pages, nullptr));
  read_through(compares, by_sgl);
  // NVMe base 2.0, 3.3.3.1: PSDT in dword 0; 4.1.2: the length behind the address, and a data block is type 0.
  const std::uint32_t* entry = first_entry(by_sgl);
  EXPECT_PAIRS((entry[0] >> 14 & 3, 1u), (entry[8], 4096u), (entry[9], 0u));
}

TEST(nvme_shapes, namespaces) {
  any_drive d({.namespaces = 4});
  EXPECT_PAIRS((d.bring_up(3).facts().nsid, 3u), (d.bring_up(0).facts().nsid, 1u));
  expect_words(refusal(XIO_ERR_ARG, [&] { d.bring_up(5); }), {"has no active namespace 5"});
  // The list of active ones is 1024 long.
  any_drive many({.namespaces = 1030});
  EXPECT_EQ(many.bring_up(1029).facts().nsid, 1029u);
  expect_words(refusal(XIO_ERR_ARG, [&] { many.bring_up(1031); }), {"has no active namespace 1031"});
}

TEST(nvme_shapes, metadata) {
  any_drive d({.metadata_bytes = 8});
  expect_words(refusal(XIO_ERR_UNSUPPORTED, [&] { d.bring_up(); }),
               {"namespace 1 of nvme:x is formatted with 8 bytes of metadata; format it without"});
}

// And a namespace opens only if the drive's description of it fits the attributes.
TEST(nvme_shapes, write_protected) {
  any_drive d({}, XIO_STORAGE_READ_ONLY);
  const nvme::drive_facts& f = d.bring_up().facts();
  EXPECT_TRUE(f.read_only);
  EXPECT_EQ(d.make_queues(16, 1).view().read_only, 1u);
  const auto sentence = [&](std::uint32_t flags, std::uint64_t bytes, std::uint32_t block) {
    xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
    attr.flags = flags;
    attr.bytes = bytes;
    attr.block_bytes = block;
    return refusal([&] { nvme::check_namespace(f, attr, "nvme:x/1"); });
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

TEST(nvme_shapes, queues_that_cannot_be) {
  any_drive d({});
  nvme::drive& drive = d.bring_up();
  drive.request_queues(2);
  const nvme::drive_memory memory(d, 8192);
  const std::uint64_t sq = memory.address(), cq = sq + 4096;
  drive.create_queues(1, sq, 8, cq, 8);
  expect_words(refusal([&] { drive.create_queues(1, sq, 8, cq, 8); }), {"(status 0x101"});
  expect_words(refusal([&] { drive.create_queues(2, sq + 4, 8, cq, 8); }), {"(status 0x13"});
  drive.delete_queues(1);
  EXPECT_EQ(d.csts(), wire::nvme::k_csts_rdy);
  // A drive that does not say that a queue is gone is stopped as a whole: its memory is about to be.
  drive.delete_queues(1);
  EXPECT_EQ(d.csts(), 0u);
}
