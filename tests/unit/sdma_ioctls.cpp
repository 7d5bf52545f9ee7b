// SPDX-License-Identifier: MIT
// ioctl_driver.cpp over a kernel of this file, which keeps the rules of the true one (linux amdkfd kfd_chardev.c,
// kfd_queue.c): objects are freed once no GPU maps them, a queue's ring and pointers are whole mappings and stay while
// it lives, and memory shows as a dma-buf.

#include "gpu/kfd_kernel.hpp"
#include "gpu/kfd_uapi.hpp"
#include "outcome.hpp"
#include "says.hpp"
#include "sysfs_tree.hpp"
#include "transport/sdma/kfd_engine.hpp"

namespace xio::sdma {
namespace {

using xio::test::refusal;
using xio::test::says;

constexpr std::uint32_t k_gpu_id = 0x5a01, k_node = 1;
constexpr std::uint64_t k_doorbells_at = std::uint64_t{3} << 62 | std::uint64_t{k_gpu_id} << 46;

// The kernel has these, and one of its calls fails.
struct machine_state {
  struct object {
    kfd::alloc_memory asked;
    bool mapped = false;
    int file = -1;
  };
  std::map<std::uint64_t, object> objects;
  std::map<std::uint32_t, kfd::create_queue> queues;
  std::uint64_t next = std::uint64_t{k_gpu_id} << 32 | 1;
  std::uint32_t minor = 23;
  int fail_at = -1, calls = 0, error = EIO;
  std::vector<std::string> wrong;  // rules that were broken
};

class fake_kernel final : public kfd_kernel {
 public:
  explicit fake_kernel(machine_state& m) : m_(m) {}

  int control(unsigned long request, void* a, int) noexcept override {
    const bool gives_back =
        request == kfd::k_unmap_memory || request == kfd::k_free_memory || request == kfd::k_destroy_queue;
    if (!gives_back && m_.calls++ == m_.fail_at) return m_.error;
    switch (request) {
      case kfd::k_get_version: *static_cast<kfd::version*>(a) = {1, m_.minor}; return 0;
      case kfd::k_alloc_memory: return allocate(*static_cast<kfd::alloc_memory*>(a));
      case kfd::k_free_memory: return free(*static_cast<kfd::free_memory*>(a));
      case kfd::k_map_memory: return map(*static_cast<kfd::map_memory*>(a), true);
      case kfd::k_unmap_memory: return map(*static_cast<kfd::map_memory*>(a), false);
      case kfd::k_export_dmabuf: return export_one(*static_cast<kfd::export_dmabuf*>(a));
      case kfd::k_create_queue: return create(*static_cast<kfd::create_queue*>(a));
      case kfd::k_destroy_queue:
        return m_.queues.erase(static_cast<kfd::destroy_queue*>(a)->queue_id) == 1 ? 0 : EINVAL;
    }
    return ENOTTY;
  }

  int show(void* at, std::size_t bytes, int fd, std::uint64_t offset) noexcept override {
    if (m_.calls++ == m_.fail_at) return m_.error;
    if (fd < 0 && (offset != k_doorbells_at || bytes != kfd::k_doorbell_bytes)) return EINVAL;
    const int file = fd < 0 ? doorbells_ : fd;
    return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED ? errno : 0;
  }

 private:
  int allocate(kfd::alloc_memory& a) {
    const bool bells = (a.flags & kfd::doorbells) != 0;
    if (a.gpu_id != k_gpu_id || a.va == 0 || a.va % gpu::page_size() != 0 || a.bytes % gpu::page_size() != 0)
      return EINVAL;
    if (bells && a.bytes != kfd::k_doorbell_bytes) return EINVAL;
    const int kinds = ((a.flags & kfd::in_vram) != 0) + ((a.flags & kfd::in_gtt) != 0) + bells;
    if (kinds != 1 || (a.flags & kfd::writable) == 0) return EINVAL;
    a.handle = m_.next++;
    machine_state::object o{a, false, -1};
    if (!bells) {
      o.file = memfd_create("object", MFD_CLOEXEC);
      if (ftruncate(o.file, static_cast<off_t>(a.bytes)) != 0) return ENOMEM;
      const unsigned char dirt = 0xa5;  // VRAM is as somebody left it
      if (pwrite(o.file, &dirt, 1, 0) != 1) return EIO;
    }
    m_.objects[a.handle] = o;
    return 0;
  }

  int free(const kfd::free_memory& a) {
    const auto found = m_.objects.find(a.handle);
    if (found == m_.objects.end()) return EINVAL;
    if (found->second.mapped) return EBUSY;
    close(found->second.file);
    m_.objects.erase(found);
    return 0;
  }

  int map(kfd::map_memory& a, bool on) {
    const auto found = m_.objects.find(a.handle);
    if (found == m_.objects.end() || a.count != 1 || a.done != 0) return EINVAL;
    if (*reinterpret_cast<const std::uint32_t*>(a.gpu_ids) != k_gpu_id) return EINVAL;
    const std::uint64_t va = found->second.asked.va;
    for (const auto& [id, q] : m_.queues)
      if (!on && (q.ring == va || page_of(q.write_pointer) == va || page_of(q.read_pointer) == va)) {
        m_.wrong.push_back("memory of queue " + std::to_string(id) + " was to be unmapped");
        return EBUSY;
      }
    found->second.mapped = on;
    a.done = 1;
    return 0;
  }

  int export_one(kfd::export_dmabuf& a) {
    const auto found = m_.objects.find(a.handle);
    if (found == m_.objects.end() || found->second.file < 0) return EINVAL;
    const int fd = dup(found->second.file);
    a.fd = static_cast<std::uint32_t>(fd);
    return fd < 0 ? errno : 0;
  }

  int create(kfd::create_queue& a) {
    const auto is_whole = [&](std::uint64_t at, std::uint64_t bytes) {
      for (const auto& [handle, o] : m_.objects)
        if (o.asked.va == at && o.asked.bytes == bytes) return o.mapped;
      return false;
    };
    if (a.percentage == 0 || a.percentage > 100 || a.priority > 15 || (a.ring_bytes & (a.ring_bytes - 1)) != 0)
      return EINVAL;
    if (!is_whole(a.ring, a.ring_bytes) || !is_whole(page_of(a.write_pointer), gpu::page_size()) ||
        !is_whole(page_of(a.read_pointer), gpu::page_size()))
      return EINVAL;
    if (a.write_pointer / 64 == a.read_pointer / 64) return EINVAL;  // a rule of this test: lines of their own
    if (*reinterpret_cast<const std::uint64_t*>(a.write_pointer) != 0)
      m_.wrong.push_back("a write pointer that is not 0");
    a.queue_id = static_cast<std::uint32_t>(m_.queues.size() + 7);
    a.doorbell_offset = k_doorbells_at | (0x100 + m_.queues.size()) * 8;
    m_.queues[a.queue_id] = a;
    return 0;
  }

  static std::uint64_t page_of(std::uint64_t at) { return at / gpu::page_size() * gpu::page_size(); }

  machine_state& m_;
  const int doorbells_ = [] {
    const int fd = memfd_create("doorbells", MFD_CLOEXEC);
    return ftruncate(fd, kfd::k_doorbell_bytes) == 0 ? fd : -1;
  }();
};

struct sdma_ioctls : testing::Test {
  // A processor, and a GPU with 2 engines for PCIe, 3 for xGMI, and a link to another GPU that a cgroup hides.
  void SetUp() override {
    const std::string nodes = "/sys/class/kfd/kfd/topology/nodes/";
    tree_.file(nodes + "0/properties", "cpu_cores_count 4\nsimd_count 0\n");
    tree_.file(nodes + "0/gpu_id", "0\n");
    tree_.file(nodes + "1/properties",
               "simd_count 64\nlocation_id 768\ndomain 0\ndrm_render_minor 128\nnum_sdma_engines 2\n"
               "num_sdma_xgmi_engines 3\nnum_sdma_queues_per_engine 8\n");
    tree_.file(nodes + "1/gpu_id", std::to_string(k_gpu_id) + "\n");
    tree_.file(nodes + "1/io_links/0/properties", "type 2\nnode_from 1\nnode_to 0\n");
    tree_.file(nodes + "1/io_links/1/properties",
               "type 11\nnode_from 1\nnode_to 2\nrecommended_sdma_engine_id_mask 20\n");
    tree_.file(nodes + "2/properties", "");
    tree_.file("/dev/dri/renderD128", "");
  }
  void TearDown() override {
    EXPECT_TRUE(m_.objects.empty() && m_.queues.empty());
    EXPECT_EQ(m_.wrong, std::vector<std::string>{});
  }
  std::unique_ptr<kfd_driver> open() { return open_by_ioctls(std::make_unique<fake_kernel>(m_), tree_.root); }

  const xio::test::sysfs_tree tree_;
  machine_state m_;
};

TEST_F(sdma_ioctls, gpus_are_what_the_kernel_says_and_this_process_may_use) {
  auto gpus = open()->gpus();
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_PAIRS((gpus[0].node, k_node), (gpus[0].identity, "0000:03:00.0"), (gpus[0].facts.engines, 2u),
               (gpus[0].facts.xgmi_engines, 3u), (gpus[0].facts.queues_per_engine, 8u));
  EXPECT_TRUE(gpus[0].facts.by_engine);
  ASSERT_EQ(gpus[0].links.size(), 2u);
  EXPECT_FALSE(gpus[0].links[0].facts.xgmi);
  EXPECT_PAIRS((gpus[0].links[1].to_node, 2u), (gpus[0].links[1].facts.recommended, 20u));
  m_.minor = 16;
  EXPECT_FALSE(open()->gpus()[0].facts.by_engine);
  std::filesystem::remove(tree_.root + "/dev/dri/renderD128");
  EXPECT_TRUE(open()->gpus().empty());
}

TEST_F(sdma_ioctls, a_queue_has_what_host_and_kernels_store_to) {
  auto driver = open();
  driver->gpus();
  const std::size_t bytes = 4 * gpu::page_size();
  const struct {
    engine_choice choice;
    std::uint32_t type, engine;
    gpu::place where;
    std::uint32_t memory;
  } rows[] = {{{queue_kind::pcie, 3}, 1, 0, gpu::place::shared, kfd::in_gtt},
              {{queue_kind::xgmi, 0}, 3, 0, gpu::place::shared, kfd::in_gtt},
              {{queue_kind::by_engine, 4}, 4, 4, gpu::place::device, kfd::in_vram | kfd::host_access}};
  std::vector<std::pair<void*, kfd_queue>> all;
  for (const auto& row : rows) {
    void* ring = driver->allocate_ring(k_node, bytes, row.where);
    EXPECT_EQ(m_.objects.rbegin()->second.asked.flags & (kfd::in_gtt | kfd::in_vram | kfd::host_access), row.memory);
    EXPECT_EQ(*static_cast<unsigned char*>(ring), 0) << "rings begin as zeros";
    const kfd_queue q = driver->create_queue(k_node, row.choice, ring, bytes);
    const kfd::create_queue& made = m_.queues.at(static_cast<std::uint32_t>(q.id));
    EXPECT_PAIRS((made.type, row.type), (made.engine, row.engine), (made.ring_bytes, bytes), (made.percentage, 100u),
                 (reinterpret_cast<std::uint64_t>(q.wptr), made.write_pointer));
    EXPECT_EQ(reinterpret_cast<std::uint64_t>(q.doorbell) % kfd::k_doorbell_bytes % gpu::page_size(),
              made.doorbell_offset % gpu::page_size());
    *q.doorbell = q.id;  // of its own
    *q.wptr = q.id;
    std::memset(ring, 7, bytes);
    all.emplace_back(ring, q);
  }
  for (const auto& [ring, q] : all) EXPECT_EQ(*q.doorbell, q.id);
  for (const auto& [ring, q] : all) {
    driver->destroy_queue(q.id);
    driver->free_ring(ring, bytes);
  }
}

// Each call fails once, with each errno that it is known for.
TEST_F(sdma_ioctls, whatever_fails_everything_goes_back_with_a_sentence) {
  for (const int error : {ENOMEM, ENODEV, ESRCH, EINVAL, EPERM, EIO})
    for (int at = 0; at < 16; ++at) {
      m_.error = error;
      m_.calls = 0;
      m_.fail_at = at;
      const auto [status, sentence, seconds] = test::outcome_of([&] {
        auto e = open_kfd_engine(options::defaults(), open(), {"gfx90a", "0000:03:00.0"});
        auto q = e->create_queue({static_cast<std::uint32_t>(gpu::page_size() / 64), 0, -1, 0, false});
      });
      EXPECT_TRUE(m_.objects.empty() && m_.queues.empty()) << at;
      if (at >= 13) {
        EXPECT_EQ(status, XIO_OK) << at << sentence;
        continue;
      }
      const bool full = error == ENOMEM || error == EPERM;
      EXPECT_EQ(status, at == 0 ? XIO_ERR_UNSUPPORTED : full ? XIO_ERR_NO_MEMORY : XIO_ERR_IO) << at << sentence;
      if (at > 0 && (error == ENODEV || error == ESRCH)) {
        EXPECT_TRUE(says(sentence, "HIP's runtime")) << sentence;
      }
      EXPECT_EQ(sentence.find('\n'), std::string::npos);
    }
  m_.fail_at = -1;
}

TEST_F(sdma_ioctls, a_kernel_that_is_too_old_says_so) {
  m_.minor = 11;
  EXPECT_TRUE(says(refusal(XIO_ERR_UNSUPPORTED, [&] { open(); }), "1.12"));
}

}  // namespace
}  // namespace xio::sdma
