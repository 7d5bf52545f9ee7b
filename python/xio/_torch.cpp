// SPDX-License-Identifier: MIT
// XIO as a backend of PyTorch's symmetric memory (docs/python.md). torch.py compiles it when it is first used, for the
// PyTorch that is there; it includes no header of XIO and is linked with no libxio: torch.py gives it the addresses of
// the calls, and the sizes of what they take.
//
// An allocation is one block of the symmetric heap: for each group that may use it a row of words of its own and a
// signal pad of PyTorch's, then the data. Word `channel * members + rank` counts the signals of that member.
#include <torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.hpp>
#include <torch/extension.h>

#include <map>
#include <memory>
#include <mutex>
#ifdef XIO_TORCH_GPU
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAStream.h>
#endif
#ifdef XIO_TORCH_POOL
#include <torch/csrc/cuda/CUDAPluggableAllocator.h>
#endif

namespace {

using namespace c10d::symmetric_memory;
namespace py = pybind11;

// --- XIO's calls -------------------------------------------------------------------------------------

struct context {
  uint64_t words[XIO_CTX_WORDS];
};
struct attributes {  // xio_stream_attr_t
  size_t size;
  int* status;
  uint32_t timeout_ms, workgroups, flags;
};
struct error_info {  // xio_error_info_t
  size_t size;
  int status;
  const char* engine;
  uint32_t queue, vendor;
  uint64_t ticket;
  char sentence[256];
};
enum { signal_add = 1 };

struct calls {
  void* (*ptr)(const void*, const void*, int);
  const char* (*last_error)();
  int (*barrier_all)(void*, context, void*, const attributes*);
  int (*quiet)(void*, context, void*, const attributes*);
  int (*signal_op)(void*, context, uint64_t*, uint64_t, int, int, void*, const attributes*);
  int (*signal_take)(void*, context, uint64_t*, uint64_t, void*, const attributes*);
  int (*ctx_failed)(const void*, context, int*);
  int (*ctx_error)(const void*, context, error_info*);
  int (*synchronize)(void*);  // of the host platform; else null
};

template <class F>
void take(F& call, const py::dict& table, const char* name) {
  call = reinterpret_cast<F>(table[name].cast<uintptr_t>());
}

// --- The world ---------------------------------------------------------------------------------------

struct place {
  void* base;
  size_t bytes;   // of the data
  int64_t serial;  // the same on all ranks
};

class backend {
 public:
  backend(py::object owner, const py::dict& table)
      : owner_(std::move(owner)),
        world_(reinterpret_cast<void*>(table["world"].cast<uintptr_t>())),
        groups_(table["groups"].cast<size_t>()),
        channels_(table["channels"].cast<size_t>()),
        size_(table["size"].cast<int>()),
        device_(static_cast<c10::DeviceType>(table["device_type"].cast<int>()),
                static_cast<c10::DeviceIndex>(table["device"].cast<int>())) {
    const auto words = table["context"].cast<std::vector<uint64_t>>();
    TORCH_CHECK(words.size() == XIO_CTX_WORDS);
    std::copy(words.begin(), words.end(), ctx_.words);
    take(call_.ptr, table, "ptr");
    take(call_.last_error, table, "last_error");
    take(call_.barrier_all, table, "barrier_all_on_stream");
    take(call_.quiet, table, "quiet_on_stream");
    take(call_.signal_op, table, "signal_op_on_stream");
    take(call_.signal_take, table, "signal_take_on_stream");
    take(call_.ctx_failed, table, "ctx_failed");
    take(call_.ctx_error, table, "ctx_error");
    take(call_.synchronize, table, "synchronize");
  }

  int size() const { return size_; }
  size_t channels() const { return channels_; }
  c10::Device device() const { return device_; }
  bool is_cpu() const { return device_.is_cpu(); }
  void* at(const void* mine, int pe) const { return call_.ptr(world_, mine, pe); }

  size_t words_bytes() const { return (channels_ * size_t(size_) * 8 + 255) & ~size_t{255}; }
  size_t row_bytes() const { return words_bytes() + ((get_signal_pad_size() + 255) & ~size_t{255}); }
  size_t head_bytes() const { return groups_ * row_bytes(); }

  // Calls of torch.py, for what is seldom.
  template <class... T>
  py::object ask(const char* what, T... with) {
    return owner_.attr(what)(with...);
  }

  void* stream() const {
#ifdef XIO_TORCH_GPU
    if (!is_cpu()) return c10::cuda::getCurrentCUDAStream(device_.index()).stream();
#endif
    return nullptr;
  }

  // A call with a stream, which has to be in it and, without a GPU, to be done.
  template <class Call>
  void call(size_t timeout_ms, Call&& make) {
    check_failed();
    attributes a{sizeof(attributes), nullptr, static_cast<uint32_t>(std::min<size_t>(timeout_ms, UINT32_MAX - 1)), 0, 0};
    void* s = stream();
    TORCH_CHECK(make(call_, world_, ctx_, s, &a) == 0, "XIO: ", call_.last_error());
    if (call_.synchronize == nullptr) return;
    {
      std::unique_ptr<py::gil_scoped_release> released;
      if (PyGILState_Check() != 0) released = std::make_unique<py::gil_scoped_release>();
      call_.synchronize(s);
    }
    check_failed();
  }

  // Barriers of the whole world are one sequence: one that is made in another stream comes behind the one before.
  void follow_barriers() {
#ifdef XIO_TORCH_GPU
    if (is_cpu()) return;
    const auto now = c10::cuda::getCurrentCUDAStream(device_.index());
    std::lock_guard<std::mutex> lock(mutex_);
    if (last_ == now) return;
    if (c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None) return;
    if (last_) {
      c10::Event done(device_.type());
      done.record(last_->unwrap());
      done.block(now.unwrap());
    }
    last_ = now;
#endif
  }

 private:
  void check_failed() {
    int first = 0;
    call_.ctx_failed(world_, ctx_, &first);
    if (first == 0) return;
    error_info info{sizeof(error_info), 0, nullptr, 0, 0, 0, {}};
    call_.ctx_error(world_, ctx_, &info);
    TORCH_CHECK(false, "XIO: ", info.sentence);
  }

  py::object owner_;
  void* world_;
  size_t groups_, channels_;
  int size_;
  c10::Device device_;
  context ctx_{};
  calls call_{};
#ifdef XIO_TORCH_GPU
  std::mutex mutex_;
  std::optional<c10::cuda::CUDAStream> last_;
#endif
};

// --- PyTorch's two classes ---------------------------------------------------------------------------

class handle : public SymmetricMemory {
 public:
  // row: of this group, in front of the data; offset: of the tensor in the allocation.
  handle(backend& b, place p, std::vector<int> pes, int rank, size_t row, size_t offset)
      : b_(b), place_(p), pes_(std::move(pes)), rank_(rank), offset_(offset) {
    auto* mine = static_cast<char*>(p.base);
    words_ = reinterpret_cast<uint64_t*>(mine + row * b.row_bytes());
    for (int pe : pes_) {
      auto* base = static_cast<char*>(b.at(p.base, pe));
      pads_.push_back(base != nullptr ? base + row * b.row_bytes() + b.words_bytes() : nullptr);
      buffers_.push_back(base != nullptr ? base + b.head_bytes() : nullptr);
    }
    if (b.is_cpu()) return;
    std::vector<int64_t> addresses;
    for (const auto* list : {&buffers_, &pads_})
      for (void* one : *list) addresses.push_back(reinterpret_cast<int64_t>(one));
    on_device_ = at::tensor(addresses, at::kLong).to(b.device());
    ranks_on_device_ = at::tensor(pes_, at::kInt).to(b.device());
  }

  std::vector<void*> get_buffer_ptrs() override { return buffers_; }
  std::vector<void*> get_signal_pad_ptrs() override { return pads_; }
  void** get_buffer_ptrs_dev() override { return b_.is_cpu() ? buffers_.data() : listed(0); }
  void** get_signal_pad_ptrs_dev() override { return b_.is_cpu() ? pads_.data() : listed(pes_.size()); }
  size_t get_buffer_size() override { return place_.bytes; }
  size_t get_offset() override { return offset_; }
  bool has_multicast_support() override { return false; }
  void* get_multicast_ptr() override { return nullptr; }
  int get_rank() override { return rank_; }
  int get_world_size() override { return static_cast<int>(pes_.size()); }
  c10::Device get_device() override { return b_.device(); }
  const std::vector<int>& get_rank_to_global_rank() override { return pes_; }
  int* get_rank_to_global_rank_dev() override {
    return b_.is_cpu() ? pes_.data() : ranks_on_device_.data_ptr<int>();
  }
  bool world_within_direct_access() override {
    return std::find(buffers_.begin(), buffers_.end(), nullptr) == buffers_.end();
  }

  // Of the whole world by XIO's own barrier; else each member signals all others, and waits for them.
  void barrier(int channel, size_t timeout_ms) override {
    check_channel(channel);
    if (channel == 0 && get_world_size() == b_.size()) {
      b_.follow_barriers();
      b_.call(timeout_ms, [](const calls& c, void* w, const context& x, void* s, const attributes* a) {
        return c.barrier_all(w, x, s, a);
      });
      return;
    }
    b_.call(timeout_ms, [](const calls& c, void* w, const context& x, void* s, const attributes* a) {
      return c.quiet(w, x, s, a);
    });
    for (int other = 0; other < get_world_size(); ++other)
      if (other != rank_) put_signal(other, channel, timeout_ms);
    for (int other = 0; other < get_world_size(); ++other)
      if (other != rank_) wait_signal(other, channel, timeout_ms);
  }
  void put_signal(int to, int channel, size_t timeout_ms) override {
    check_rank_of(to);
    check_channel(channel);
    b_.call(timeout_ms, [&](const calls& c, void* w, const context& x, void* s, const attributes* a) {
      return c.signal_op(w, x, word(channel, rank_), 1, signal_add, pes_[static_cast<size_t>(to)], s, a);
    });
  }
  // Takes the signal away again, so that each replay of a graph waits for its own.
  void wait_signal(int from, int channel, size_t timeout_ms) override {
    check_rank_of(from);
    check_channel(channel);
    b_.call(timeout_ms, [&](const calls& c, void* w, const context& x, void* s, const attributes* a) {
      return c.signal_take(w, x, word(channel, from), 1, s, a);
    });
  }

 private:
  void** listed(size_t from) { return reinterpret_cast<void**>(on_device_.data_ptr<int64_t>()) + from; }
  uint64_t* word(int channel, int member) { return words_ + size_t(channel) * pes_.size() + size_t(member); }
  void check_rank_of(int rank) {
    TORCH_CHECK(rank >= 0 && rank < get_world_size(), "XIO: rank ", rank, " of a group of ", get_world_size());
  }
  void check_channel(int channel) {
    TORCH_CHECK(channel >= 0 && size_t(channel) < b_.channels(), "XIO: channel ", channel, ", and there are ",
                b_.channels(), ": give xio.torch.enable more by channels=");
  }

  backend& b_;
  place place_;
  std::vector<int> pes_;
  int rank_;
  size_t offset_;
  uint64_t* words_;
  std::vector<void*> buffers_, pads_;
  at::Tensor on_device_, ranks_on_device_;
};

class allocator : public SymmetricMemoryAllocator {
 public:
  explicit allocator(backend& b) : b_(b) {}

  // Collective over the world.
  void* alloc(size_t size, int device, const std::optional<std::string>&) override {
    TORCH_CHECK(b_.is_cpu() || device == b_.device().index(), "XIO: memory of device ", device,
                " was asked for, and XIO's heap is on ", b_.device().index(), ": set the device before enable");
    place p{nullptr, size, 0};
    {
      py::gil_scoped_acquire gil;
      const auto made = b_.ask("_allocate", b_.head_bytes() + size).cast<std::pair<uintptr_t, int64_t>>();
      p.base = reinterpret_cast<void*>(made.first);
      p.serial = made.second;
    }
    char* data = static_cast<char*>(p.base) + b_.head_bytes();
    std::lock_guard<std::mutex> lock(mutex_);
    places_[data] = p;
    return data;
  }
  // Local: the heap's block is freed when all ranks have dropped it.
  void free(void* data) override {
    place p{};
    std::vector<c10::intrusive_ptr<SymmetricMemory>> gone;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const auto found = places_.find(static_cast<char*>(data));
      if (found == places_.end()) return;
      p = found->second;
      places_.erase(found);
      for (auto i = handles_.begin(); i != handles_.end();) {
        const bool of_it = i->first.first >= data && i->first.first < static_cast<char*>(data) + p.bytes;
        if (of_it) gone.push_back(i->second);
        i = of_it ? handles_.erase(i) : std::next(i);
      }
    }
    if (Py_IsInitialized() == 0 || is_finalizing()) return;
    py::gil_scoped_acquire gil;
    b_.ask("_drop", reinterpret_cast<uintptr_t>(p.base));
  }
  size_t get_alloc_size(void* data) override { return find(data).second.bytes; }

  // Collective over the group.
  c10::intrusive_ptr<SymmetricMemory> rendezvous(void* data, const std::optional<std::string>& group) override {
    const std::pair<char*, std::string> key{static_cast<char*>(data), group.value_or("0")};
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (const auto made = handles_.find(key); made != handles_.end()) return made->second;
    }
    const auto [begin, p] = find(data);
    std::vector<int> pes;
    int rank = 0;
    size_t row = 0;
    {
      py::gil_scoped_acquire gil;
      const auto joined = b_.ask("_join", p.serial, key.second).cast<std::tuple<std::vector<int>, int, size_t>>();
      std::tie(pes, rank, row) = joined;
    }
    const auto offset = static_cast<size_t>(key.first - begin);
    auto made = c10::make_intrusive<handle>(b_, p, std::move(pes), rank, row, offset);
    std::lock_guard<std::mutex> lock(mutex_);
    return handles_.emplace(key, made).first->second;
  }
  bool has_multicast_support(int) override { return false; }
  c10::DeviceType supported_device_type() override { return b_.device().type(); }
  std::string name() override { return "XIO"; }
  bool has_allocation(void* data) { return lookup(data).has_value(); }  // PyTorch 2.11 does not ask for it

 private:
  // A tensor may begin inside of an allocation.
  std::optional<std::pair<char*, place>> lookup(void* data) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto next = places_.upper_bound(static_cast<char*>(data));
    if (next == places_.begin()) return std::nullopt;
    const auto& found = *std::prev(next);
    if (static_cast<char*>(data) >= found.first + std::max<size_t>(1, found.second.bytes)) return std::nullopt;
    return found;
  }
  std::pair<char*, place> find(void* data) {
    const auto found = lookup(data);
    TORCH_CHECK(found, "XIO: the tensor is not in XIO's heap: allocate it by symm_mem.empty");
    return *found;
  }

  backend& b_;
  std::mutex mutex_;
  std::map<char*, place> places_;
  std::map<std::pair<char*, std::string>, c10::intrusive_ptr<SymmetricMemory>> handles_;
};

// Never destroyed: tensors and handles may outlive the interpreter.
void enable(py::object owner, const py::dict& table) {
  auto* b = new backend(std::move(owner), table);
  auto a = c10::make_intrusive<allocator>(*b);
  register_availability("XIO", a);
  if (b->is_cpu()) register_allocator(c10::DeviceType::CPU, a);
#ifdef XIO_TORCH_POOL
  // torch.cuda.use_mem_pool(symm_mem.get_mem_pool(device)): segments come from here.
  register_mempool_allocator(c10::DeviceType::CUDA,
                             torch::cuda::CUDAPluggableAllocator::createCustomAllocator(
                                 [a](size_t size, int device, cudaStream_t) { return a->alloc(size, device, {}); },
                                 [a](void* data, size_t, int, cudaStream_t) { a->free(data); }));
#endif
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("enable", &enable);
  m.attr("attributes_bytes") = sizeof(attributes);
  m.attr("error_info_bytes") = sizeof(error_info);
}
