// SPDX-License-Identifier: MIT
#include "ctx/team_book.hpp"

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
  const std::uint64_t each = dev::team_work_bytes(members, wanted) / wanted.channels;
  for (std::uint64_t c = 0; c < wanted.channels; ++c)
    gpu::copy(work + c * each + offsetof(dev::channel_state, team), &mark, sizeof mark);
}

dev::team_wishes wishes_of(const team_options& o) {
  const std::uint64_t packets = o.team_packets.value_or(gpu::most_packet_bytes());
  return {o.team_area, static_cast<std::uint32_t>(packets / 16 * 16),  // messages lie behind each other
          static_cast<std::uint32_t>(o.team_channels)};
}

}  // namespace

const team* team_book::parent(xio_team_t t) const {
  if (t.id == 0 && t.n_pes == 0) return nullptr;
  const team& found = teams_.get(t.id);
  for (const int pe : found.pes)
    if (!members_.takes_part(pe))
      fail(XIO_ERR_STATE, "the team {} is over: its member PE {} has left the world; make a new one",
           teams_.serial(t.id), pe);
  return found.pes.empty() ? nullptr : &found;
}

std::vector<int> team_book::members_of(xio_team_t t) const {
  const team* found = parent(t);
  return found != nullptr ? found->pes : std::vector<int>{};
}

team_book::makers team_book::makers_of(const team* parent) {
  if (parent == nullptr || parent->channel == nullptr) return {members_.channel(), members_.agree(), true};
  agreement own(*parent->channel);
  own.limit(members_.timeout_ms());
  return {*parent->channel, own, false};
}

bootstrap::one_call team_book::one_call(const team* parent) {
  return {makers_of(parent).channel, members_.timeout_ms()};
}

// The members of each new team that is smaller than the world learn how to exchange without the others.
void team_book::connect(const makers& all, team& made, const std::vector<team_offer>& offers) {
  const std::size_t living = members_.everybody().size();
  if (std::ranges::none_of(offers, [&](const team_offer& o) { return o.count != 0 && o.count < living; })) return;
  bootstrap::groups& groups = members_.groups();
  if (all.are_all) groups.agree_on_keys(members_.channel());
  bootstrap::pe_set pes(members_.size());
  for (const int pe : made.pes) pes.add(pe);
  const bool is_smaller = !made.pes.empty() && made.pes.size() < living;
  bootstrap::group_place place{};
  if (is_smaller && pes.lowest() == members_.me()) place = groups.offer();
  bootstrap::cells mine;
  for (int pe = 0; pe < members_.size(); ++pe)
    mine.add(place.word != 0 && pes.has(pe) ? std::as_bytes(std::span(&place, 1)) : std::span<const std::byte>());
  const bootstrap::cells got = all.channel.all_to_all(mine);
  if (!is_smaller) return;
  const auto theirs = got[static_cast<std::size_t>(pes.lowest())];
  if (theirs.size() == sizeof place) std::memcpy(&place, theirs.data(), sizeof place);
  made.channel = groups.open(pes, place);
}

// The highest place that is free at all that hold it: each names its own below the lowest one named, until all name the
// same. That ends, for a place only sinks; one round does where the makers have made the same teams.
std::uint64_t team_book::common_place(const makers& all, std::uint64_t bytes, bool holds) {
  std::uint64_t end = heap_.size();
  for (;;) {
    const std::uint64_t mine = holds ? heap_.place_below(end, bytes) : end - bytes;
    std::uint64_t lowest = mine, highest = mine;
    for (const std::uint64_t one : bootstrap::allgather_value(all.channel, mine)) {
      lowest = std::min(lowest, one);
      highest = std::max(highest, one);
    }
    if (lowest == highest || lowest == 0) return lowest;
    end = lowest + bytes;
  }
}

void team_book::give_back(const team& t) { t.alone ? heap_.let_go(t.offset) : heap_.give_back(t.offset); }

xio_team_t team_book::create(const team* parent, const std::function<std::vector<int>()>& choose) {
  makers all = makers_of(parent);
  const bootstrap::one_call whole(all.channel, members_.timeout_ms());
  auto made = std::make_unique<team>();
  made->alone = parent != nullptr;
  all.agree.each(call::team_create, [&] {
    made->pes = choose();
    check_members(made->pes, members_.me(), members_.size());
    for (const int pe : made->pes)
      if (!members_.takes_part(pe))
        fail(XIO_ERR_PE, "a team's list names PE {}, which has left the world; name those that live", pe);
  });
  const auto offers = bootstrap::allgather_value(all.channel, offer_of(made->pes));
  connect(all, *made, offers);
  const dev::team_wishes wanted = wishes_of(options_);
  const std::uint64_t bytes = work_bytes_for(offers, wanted);
  const bool holds = !made->alone || !made->pes.empty();
  if (made->alone && bytes != 0) made->offset = common_place(all, bytes, holds);
  if (made->alone && holds && made->offset != 0) heap_.hold(made->offset, bytes);
  try {
    all.agree.vote(call::team_create, [&] {
      check_offers(made->pes, members_.me(), offers);
      if (!made->alone) made->offset = heap_.take({"xio_team_create", 1, bytes, alignof(dev::channel_state)});
      if (made->offset == 0 && bytes != 0)
        fail(XIO_ERR_NO_MEMORY,
             "the end of the symmetric heap has no {} bytes that are free at all members of the parent; raise "
             "XIO_HEAP_SIZE, free something or lower XIO_TEAM_AREA",
             bytes);
      prepare(*made, bytes, wanted);
      return arguments{{"the offset of its memory in the heap", made->offset},
                       {"XIO_TEAM_AREA", wanted.area},
                       {"XIO_TEAM_PACKETS", wanted.packets},
                       {"XIO_TEAM_CHANNELS", wanted.channels}};
    });
  } catch (...) {
    // Where nothing was agreed on, another member may take the team for made, and store to it.
    if (holds && (!made->alone || all.agree.came_to_one())) give_back(*made);
    throw;
  }
  return add(std::move(made), wanted);
}

// Before the vote: a member that returns may send at once.
void team_book::prepare(team& made, std::uint64_t bytes, const dev::team_wishes& wanted) {
  if (made.alone && made.pes.empty()) return;
  gpu::fill_zero(heap_.data() + made.offset, bytes);
  made.token = std::random_device{}();
  if (made.pes.empty()) return;
  mark_channels(heap_.data() + made.offset, made.pes.size(), wanted, dev::mark_of(made.token, teams_.next(made.alone)));
  made.list = list_of(made.pes);
  made.shown = gpu::buffer(sizeof(xio_team_t), gpu::place::device);
}

xio_team_t team_book::add(std::unique_ptr<team> made, const dev::team_wishes& wanted) {
  const bool alone = made->alone;
  if (alone && made->pes.empty()) return empty_alone();
  const std::uint64_t id = teams_.add(std::move(made), alone);
  if (!alone) members_.note({call::team_create, teams_.serial(id), 0, 0, true}, [&] { return heap_.digest(); });
  const team& known = teams_.get(id);
  const xio_team_t value = known.value(id, members_.me(), heap_.data(), wanted);
  if (known.shown.data() != nullptr) gpu::put_value(known.shown.as<xio_team_t>(), value);
  return value;
}

void team_book::destroy(xio_team_t t) {
  if (teams_.is_alone(t.id)) {
    if (t.n_pes == 0 && t.id == empty_alone().id) return;
    team& ended = teams_.get(t.id);
    const bool is_over = std::ranges::any_of(ended.pes, [&](int pe) { return !members_.takes_part(pe); });
    // Members that agree on nothing any more end their parts one by one, and another one may still store to this.
    if (is_over || (ended.channel != nullptr && ended.channel->is_broken()))
      ended.is_kept = true;
    else
      makers_of(&ended).agree.each(call::team_destroy, [] {});
    return end(t.id);
  }
  members_.agree().vote(call::team_destroy, [&] {
    return arguments{{"the place of the team's memory in the heap", teams_.get(t.id).offset}};
  });
  end(t.id);
  members_.note({call::team_destroy, teams_.serial(t.id)}, [&] { return heap_.digest(); });
}

void team_book::end(std::uint64_t id) {
  const team& ended = teams_.get(id);
  if (!ended.pes.empty()) mark_channels(heap_.data() + ended.offset, ended.pes.size(), wishes_of(options_), 0);
  if (!ended.is_kept) give_back(ended);
  teams_.remove(id);
}

void team_book::keep_memory() {
  for (const auto& [id, t] : teams_.live()) t->is_kept = true;
}

}  // namespace xio
