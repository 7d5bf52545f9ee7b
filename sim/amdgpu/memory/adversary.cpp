// SPDX-License-Identifier: MIT
#include "amdgpu/memory/adversary.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <tuple>
#include <utility>

namespace amdgpu {
namespace {

// Devices, the host and other GPUs do not wait for a wave, so now and then they have time to see what is between two of
// its accesses: a doorbell that has left before its entry.
void let_others_look() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

// From the first byte that an access touches to the one behind its last.
std::pair<std::uint64_t, std::uint64_t> bounds(const access& of) {
  std::uint64_t low = ~std::uint64_t{0}, high = 0;
  for (const unsigned lane : active_lanes(of.active)) {
    const std::uint64_t address = of.address[lane];
    low = std::min(low, address);
    high = std::max(high, address + of.bytes);
  }
  return {low, high};
}

}  // namespace

bool adversary::overlap(const pending& p, const access& of) {
  for (std::uint64_t a = p.of.active; a; a &= a - 1) {
    const std::uint64_t first = p.address[std::countr_zero(a)];
    for (std::uint64_t b = of.active; b; b &= b - 1) {
      const std::uint64_t second = of.address[std::countr_zero(b)];
      if (first < second + of.bytes && second < first + p.of.bytes) return true;
    }
  }
  return false;
}

bool adversary::covers(const access& of, const pending& p) {
  if (of.bytes != p.of.bytes) return false;
  for (std::uint64_t a = p.of.active; a; a &= a - 1) {
    const std::uint64_t at = p.address[std::countr_zero(a)];
    bool found = false;
    for (std::uint64_t b = of.active; b && !found; b &= b - 1) found = of.address[std::countr_zero(b)] == at;
    if (!found) return false;
  }
  return true;
}

template <class Which>
void adversary::remove_if(Which which) {
  std::size_t left = 0;
  for (std::size_t i = 0; i < under_way.size(); ++i) {
    if (which(*under_way[i]))
      spare.push_back(std::move(under_way[i]));
    else if (left++ != i)
      under_way[left - 1] = std::move(under_way[i]);
  }
  under_way.resize(left);
}

// Null: an older access that had to be done first was refused.
adversary::pending* adversary::add(const access& of, refusal& no) {
  const auto same_wave = [&](const kept& p) { return p->of.wave == of.wave; };
  if (std::ranges::count_if(under_way, same_wave) >= std::ptrdiff_t{most_under_way}) {
    const auto oldest = std::ranges::find_if(under_way, same_wave);
    if (!finish(**oldest, no)) return nullptr;
    spare.push_back(std::move(*oldest));
    under_way.erase(oldest);
  }
  if (spare.empty()) spare.push_back(std::make_unique<pending>());
  under_way.push_back(std::move(spare.back()));
  spare.pop_back();
  pending& p = *under_way.back();
  if (of.address) std::copy_n(of.address, lanes, p.address);
  std::tie(p.low, p.high) = bounds(of);
  p.of = of;
  p.registers = nullptr;
  p.read = p.writes_back = p.done = false;
  return &p;
}

// A wave's stores reach the L2 before a write-back that it issued behind them: LLVM's releases have no wait between.
bool adversary::write_back(const pending& p, refusal& no) {
  bool good = true;
  // A place is empty while remove_if is at work.
  for (const kept& older : under_way)
    if (older && !older->registers && !older->writes_back && older->of.wave == p.of.wave &&
        older->of.number < p.of.number)
      good = good && finish(*older, no);
  memory.write_back();
  return good;
}

bool adversary::finish(pending& p, refusal& no) {
  if (p.done) return true;
  p.done = true;
  if (p.writes_back) return write_back(p, no);
  access of = p.of;
  of.address = p.address;
  if (!p.registers) return cache_of(of.wave).store(of, p.data, no);
  if (!p.read) return cache_of(of.wave).load(of, p.registers, no);
  for (const unsigned lane : active_lanes(of.active))
    for (unsigned k = 0; k < of.bytes / 4; ++k) {
      const unsigned at = k * lanes + lane;
      p.registers[at] = p.data[at];
    }
  return true;
}

// A wave sees its own accesses to one place in program order, waited for or not. A load delivers its registers after
// all older loads, as LLVM's SIInsertWaitcnts counts them for VMEM of one type, so those are finished with it.
bool adversary::finish_older(const access& of, bool loads_too, refusal& no) {
  const auto [low, high] = bounds(of);
  const auto touches = [&, low = low, high = high](const pending& p) {
    return p.of.wave == of.wave && p.low < high && low < p.high && overlap(p, of);
  };
  std::size_t loads_through = 0;
  for (std::size_t i = 0; loads_too && i < under_way.size(); ++i)
    if (under_way[i]->registers && touches(*under_way[i])) loads_through = i + 1;
  bool good = true;
  std::size_t i = 0;
  remove_if([&](pending& p) {
    const bool old_load = i++ < loads_through && p.registers && p.of.wave == of.wave;
    if (!old_load && (p.registers || !touches(p))) return false;
    good = good && finish(p, no);
    return true;
  });
  return good;
}

// A store takes the place of those of its wave that are under way to the same addresses.
void adversary::merge(const access& of) {
  const auto [low, high] = bounds(of);
  remove_if([&, low = low, high = high](const pending& p) {
    return !p.registers && !p.writes_back && p.of.wave == of.wave && p.low >= low && p.high <= high && covers(of, p);
  });
}

bool adversary::load(const access& of, std::uint32_t* data, refusal& no) {
  if (!of.active) return true;
  if (!finish_older(of, false, no)) return false;
  if (!of.to_registers) return cache_of(of.wave).load(of, data, no);
  if (!memory.mapped(of, false, no)) return false;
  pending* const p = add(of, no);
  if (!p) return false;
  p->registers = data;
  p->read = chance(2);
  if (p->read && !cache_of(of.wave).load(of, p->data, no)) return false;
  for (const unsigned lane : active_lanes(of.active))
    for (unsigned k = 0; k < of.bytes / 4; ++k) data[k * lanes + lane] = poison;
  return true;
}

bool adversary::store(const access& of, const std::uint32_t* data, refusal& no) {
  if (!of.active) return true;
  if (!memory.mapped(of, true, no)) return false;
  merge(of);
  if (!finish_older(of, true, no)) return false;
  pending* const p = add(of, no);
  if (!p) return false;
  std::copy_n(data, (of.bytes + 3) / 4 * lanes, p->data);
  return true;
}

// An atomic is done when it is issued: before the stores that are under way, as a relaxed one may be.
bool adversary::atomic(const access& of, atomic_op op, const std::uint32_t* data, const std::uint32_t* compare,
                       std::uint32_t* old, refusal& no) {
  if (!finish_older(of, true, no)) return false;
  cache_of(of.wave).drop(of);
  const bool good = memory.atomic(of, op, data, compare, old, no);
  const auto is_store = [&](const auto& p) { return !p->registers && p->of.wave == of.wave; };
  if (std::ranges::any_of(under_way, is_store) && chance(16)) let_others_look();
  return good;
}

bool adversary::load_scalar(std::uint64_t address, unsigned dwords, std::uint32_t* data, refusal& no) {
  std::uint64_t places[lanes];
  std::uint32_t words[lanes];
  access of;
  of.address = places;
  of.bytes = 4;
  of.active = (std::uint64_t{1} << dwords) - 1;
  for (unsigned i = 0; i < dwords; ++i) places[i] = (address & ~std::uint64_t{3}) + 4 * i;
  const bool good = scalar_cache.load(of, words, no);
  if (good) std::copy_n(words, dwords, data);
  no.lane = -1;
  return good;
}

const std::uint32_t* adversary::code(std::uint64_t address, std::uint64_t& left) { return memory.code(address, left); }

void adversary::writeback(unsigned wave, std::uint64_t number) {
  access of;
  of.wave = wave;
  of.number = number;
  refusal no;
  if (pending* const p = add(of, no)) {
    p->writes_back = true;
  } else if (!refused) {
    refused = true;
    late = no;
  }
}

// vmcnt counts accesses down in the order of their issue (MI200 ISA 4.4), so all up to one number are done. Stores
// among them leave in any order; loads deliver in order.
bool adversary::wait(unsigned wave, std::uint64_t through, bool by_vscnt, refusal& no) {
  std::vector<std::size_t> stores;
  bool good = !refused;
  if (refused) no = late;
  const auto waited = [&](const pending& p) {
    return p.of.wave == wave && p.of.stores == by_vscnt && p.of.number <= through;
  };
  for (std::size_t i = 0; i < under_way.size(); ++i) {
    if (!waited(*under_way[i])) continue;
    if (!under_way[i]->registers)
      stores.push_back(i);
    else
      good = good && finish(*under_way[i], no);
  }
  std::shuffle(stores.begin(), stores.end(), random);
  for (const std::size_t i : stores) {
    good = good && finish(*under_way[i], no);
    if (i != stores.back() && chance(64)) let_others_look();
  }
  remove_if(waited);
  memory.fence();
  return good;
}

void adversary::have_l0(bool on_pair, vector_cache* of_array) {
  array = of_array;
  for (unsigned i = 0; i < (on_pair ? 2u : 1u); ++i) {
    l0[i] = std::make_unique<vector_cache>(space, memory, random);
    l0[i]->put_before(array ? *array : cache);
  }
}

// A store leaves at some time though nobody waits for it.
void adversary::pass_turn() {
  remove_if([&](pending& p) {
    if (p.registers || !chance(4)) return false;
    refusal no;
    if (!finish(p, no) && !refused) {
      refused = true;
      late = no;
    }
    return true;
  });
}

}  // namespace amdgpu
