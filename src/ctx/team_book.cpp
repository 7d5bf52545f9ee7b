// SPDX-License-Identifier: MIT
#include "ctx/team_book.hpp"

#include <cstddef>
#include <random>

#include "gpu/gpu.hpp"
#include "xio/device/impl/team_layout.hpp"

namespace xio {
namespace {

gpu::buffer list_of(const std::vector<int>& pes) {
  if (pes.empty()) return {};
  const std::vector<std::uint32_t> numbers(pes.begin(), pes.end());
  gpu::buffer out(numbers.size() * sizeof numbers[0], gpu::place::device);
  gpu::copy(out.data(), numbers.data(), numbers.size() * sizeof numbers[0]);
  return out;
}

// The mark of the team in each channel's state, by which kernels see that it is still there.
void mark_channels(unsigned char* work, std::uint64_t members, const dev::team_wishes& wanted, std::uint64_t mark) {
  const std::uint64_t each = dev::team_work_bytes(members, wanted) / XIO_TEAM_CHANNELS;
  for (std::uint64_t c = 0; c < XIO_TEAM_CHANNELS; ++c)
    gpu::copy(work + c * each + offsetof(dev::channel_state, team), &mark, sizeof mark);
}

dev::team_wishes wishes_of(const team_options& o) {
  const std::uint64_t packets = o.team_packets.value_or(gpu::most_packet_bytes());
  return {o.team_area, static_cast<std::uint32_t>(packets / 16 * 16)};  // messages lie behind each other
}

}  // namespace

std::vector<int> team_book::members_of(xio_team_t t) const {
  if (t.id == 0 && t.n_pes == 0) return {};
  const team& found = teams_.get(t.id);
  for (const int pe : found.pes)
    if (!members_.takes_part(pe))
      fail(XIO_ERR_STATE, "the team {} is over: its member PE {} has left the world; make a new one",
           teams_.serial(t.id), pe);
  return found.pes;
}

xio_team_t team_book::create(const std::function<std::vector<int>()>& choose) {
  const bootstrap::one_call whole = members_.one_call();
  auto made = std::make_unique<team>();
  members_.agree().each(call::team_create, [&] {
    made->pes = choose();
    check_members(made->pes, members_.me(), members_.size());
    for (const int pe : made->pes)
      if (!members_.takes_part(pe))
        fail(XIO_ERR_PE, "a team's list names PE {}, which has left the world; name those that live", pe);
  });
  const auto offers = bootstrap::allgather_value(members_.channel(), offer_of(made->pes));
  const dev::team_wishes wanted = wishes_of(options_);
  std::uint64_t offset = 0;
  try {
    members_.agree().vote(call::team_create, [&] {
      check_offers(made->pes, members_.me(), offers);
      const std::uint64_t bytes = work_bytes_for(offers, wanted);
      offset = heap_.take({"xio_team_create", 1, bytes, alignof(dev::channel_state)});
      // Before the vote: a member that returns may send at once.
      gpu::fill_zero(heap_.data() + offset, bytes);
      made->token = std::random_device{}();
      if (!made->pes.empty())
        mark_channels(heap_.data() + offset, made->pes.size(), wanted, dev::mark_of(made->token, teams_.next()));
      made->list = list_of(made->pes);
      if (!made->pes.empty()) made->shown = gpu::buffer(sizeof(xio_team_t), gpu::place::device);
      return arguments{{"the offset of its memory in the heap", offset},
                       {"XIO_TEAM_AREA", wanted.area},
                       {"XIO_TEAM_PACKETS", wanted.packets}};
    });
  } catch (...) {
    heap_.give_back(offset);
    throw;
  }
  made->offset = offset;
  const std::uint64_t id = teams_.add(std::move(made));
  members_.note({call::team_create, teams_.serial(id), 0, 0, true}, [&] { return heap_.digest(); });
  const team& known = teams_.get(id);
  const xio_team_t value = known.value(id, members_.me(), heap_.data(), wanted);
  if (known.shown.data() != nullptr) gpu::put_value(known.shown.as<xio_team_t>(), value);
  return value;
}

void team_book::destroy(xio_team_t t) {
  members_.agree().vote(call::team_destroy, [&] {
    return arguments{{"the place of the team's memory in the heap", teams_.get(t.id).offset}};
  });
  end(t.id);
  members_.note({call::team_destroy, teams_.serial(t.id)}, [&] { return heap_.digest(); });
}

void team_book::end(std::uint64_t id) {
  const team& ended = teams_.get(id);
  if (!ended.pes.empty()) mark_channels(heap_.data() + ended.offset, ended.pes.size(), wishes_of(options_), 0);
  if (!ended.is_kept) heap_.give_back(ended.offset);
  teams_.remove(id);
}

void team_book::keep_memory() {
  for (const auto& [id, t] : teams_.live()) t->is_kept = true;
}

}  // namespace xio
