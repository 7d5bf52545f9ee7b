// SPDX-License-Identifier: MIT
#include "ctx/membership.hpp"

#include "base/fnv.hpp"
#include "base/log.hpp"
#include "base/trace.hpp"
#include "ctx/hello.hpp"

namespace xio {

membership::membership(const options& o, std::unique_ptr<bootstrap::channel> channel)
    : channel_(std::move(channel)),
      agreement_(*channel_),
      me_(channel_->rank()),
      n_(channel_->size()),
      timeout_ms_(o.timeout_ms) {
  log::set_pe(me_);
  hello mine{};
  agreement_.limit(timeout_ms_);
  agreement_.each(call::init, [&] { mine = make_hello(o); });
  mine.clock = static_cast<std::int64_t>(trace::now());  // all leave a barrier at nearly the same moment
  const auto all = bootstrap::allgather_value(*channel_, mine);
  check_hellos(all);
  job_ = fnv_1a(std::as_bytes(std::span(all)));  // they name processes
  std::vector<std::string> machines, kernels;
  for (const hello& h : all) {
    machines.emplace_back(h.machine, strnlen(h.machine, sizeof h.machine));
    kernels.emplace_back(h.kernel, strnlen(h.kernel, sizeof h.kernel));
  }
  place_ = topology::place(machines, kernels, me_);
  // PEs of a machine have one clock, which the first of them reads.
  const auto first = std::ranges::find(place_.together, true) - place_.together.begin();
  clock_lead_ = all[static_cast<std::size_t>(first)].clock - all[0].clock;
  if (o.survive != 0) outlive_members(o);
  states_.emplace(all, place_.together, *channel_);
  agreement_.watch(&*states_);
  groups_.emplace(*channel_, o, [this](const bootstrap::pe_set& pes) { check_living(pes); });
  if (place_.apart > 0)
    log::warn(
        "{} of the {} PEs of this machine are in other containers (or of other users), so RDMA reaches them and not "
        "loads and stores; where their containers share a PID namespace set XIO_MACHINE to the same word in all of "
        "them",
        place_.apart, place_.local_size);
}

void membership::check_living(const bootstrap::pe_set& pes) {
  for (const int pe : pes.list())
    if (pe != me_ && (states_->is_dead(pe) || states_->is_excluded(pe)))
      fail(XIO_ERR_PEER, "PE {} {}, and the calls of a team need every member", pe,
           states_->is_excluded(pe) ? "was excluded" : "has ended");
}

// Collective.
void membership::outlive_members(const options& o) {
  auto made = bootstrap::members_channel::open(std::move(channel_), o, k_incarnation);
  survivors_ = made.get();
  channel_ = std::move(made);
  agreement_.use(*channel_);
  survivors_->watch([this](int pe) {
    if (states_->is_dead(pe)) return bootstrap::evidence::dead;
    if (states_->is_excluded(pe)) return bootstrap::evidence::excluded;
    return states_->is_stopped(pe) ? bootstrap::evidence::stopped : bootstrap::evidence::none;
  });
}

std::vector<int> membership::everybody() const {
  std::vector<int> all;
  for (int pe = 0; pe < n_; ++pe)
    if (takes_part(pe)) all.push_back(pe);
  return all;
}

std::vector<int> membership::machine_mates() const {
  std::vector<int> mates;
  for (int pe = 0; pe < n_; ++pe)
    if (takes_part(pe) && place_.together[static_cast<std::size_t>(pe)]) mates.push_back(pe);
  return mates;
}

// Each PE's number among its machine's PEs; PEs with the same one belong together.
std::vector<int> membership::across_machines() {
  agreement_.each(call::team_create, [] {});
  const auto mates = machine_mates();
  const auto mine = static_cast<std::int32_t>(std::ranges::find(mates, me_) - mates.begin());
  const auto all = bootstrap::allgather_value(*channel_, mine);
  std::vector<int> same;
  for (int pe = 0; pe < n_; ++pe)
    if (takes_part(pe) && all[static_cast<std::size_t>(pe)] == mine) same.push_back(pe);
  return same;
}

}  // namespace xio
