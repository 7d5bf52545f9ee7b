// SPDX-License-Identifier: MIT
// What happens to the NIC whose queues kernels drive: struck link, or struck fatal. PEs put before it, and after it; a
// device that has failed for good is opened anew by xio_ctx_recover, and the heap stays.
#include "../mpi/rig.hpp"
#include "orders.hpp"

namespace {

constexpr uint64_t k_before = 0x1111, k_after = 0x2222;
// By enum ib_event_type of the kernel.
constexpr const char *k_device_fatal = "event:8", *k_port_up = "event:9", *k_port_down = "event:10";

__global__ void put_word(xio_ctx_t ctx, uint64_t* to, uint64_t value, int pe, int* status) {
  xio_p(ctx, to, value, pe);
  *status = xio_quiet(ctx);
}

void exchange(const rig::team& t, uint64_t* words, int at, uint64_t value) {
  const int status = rig::result_of(put_word, 1, 1, t.ctx, words + at, value + static_cast<uint64_t>(t.me), t.right);
  rig::expect_status(status, XIO_OK, "a put");
  t.barrier();
  const int left = t.left;
  const uint64_t got = rig::team::read(words + at, 1)[0];
  rig::expect(got == value + static_cast<uint64_t>(left), "word %d is %llx", at, rig::ull(got));
}

}  // namespace

int main(int argc, char** argv) {
  const bool fatal = argc > 1 && std::string(argv[1]) == "fatal";
  const rig::team t;
  auto* const words = t.symmetric<uint64_t>(2);
  exchange(t, words, 0, k_before);
  t.barrier();
  for (const char* event :
       fatal ? std::vector<const char*>{k_device_fatal} : std::vector<const char*>{k_port_down, k_port_up})
    uverbs::order(event);
  std::this_thread::sleep_for(std::chrono::seconds(2));  // in which the events are read
  if (fatal) MUST(xio_ctx_recover(t.world(), t.ctx));
  exchange(t, words, 1, k_after);
  rig::expect(rig::team::read(words, 1)[0] >> 12 == k_before >> 12, "the heap did not stay");
  return rig::verdict("struck", t);
}
