// SPDX-License-Identifier: MIT
#include "amdgpu/isa/under_way.hpp"

#include <algorithm>
#include <cstdio>

namespace amdgpu {
namespace {

bool touches(const arrival& a, const operand& o, unsigned dwords) {
  return o.where == a.where && o.index < a.first + a.dwords && a.first < o.index + dwords;
}

bool by_vector(const operation& o) {
  return o.kind == count::flat || o.kind == count::scratch || o.kind == count::atomic;
}

unsigned loaded_dwords(const operation& o) { return std::max<unsigned>(o.dst.dwords, (o.width + 3u) / 4); }

// Loads of one kind deliver in order, so a later one may overwrite the registers of an earlier one without a wait. Not
// so scalar loads.
bool in_order(const arrival& a, const operation& o) {
  return (a.by == arrival::counter::vm && by_vector(o)) || (a.by == arrival::counter::lds && o.kind == count::lds);
}

bool uses(const arrival& a, const operation& o) {
  if (o.both) return uses(a, o.both->first) || uses(a, o.both->second);
  for (unsigned i = 0; i < o.n_src; ++i)
    if (touches(a, o.src[i], o.src[i].dwords)) return true;
  if (in_order(a, o)) return false;
  return touches(a, o.dst, loaded_dwords(o)) || touches(a, o.dst2, o.dst2.dwords);
}

void refuse(wave& w, const operation& o, const arrival& a) {
  fault& f = stop(w, o, fault::kind::early, "");
  const std::uint64_t both = a.active & w.exec();
  if (a.where == place::vgpr) f.lane = std::countr_zero(both ? both : a.active);
  const bool agpr = a.where == place::vgpr && a.first >= reg::agpr0;
  std::string name = a.where == place::sgpr ? "s" : agpr ? "a" : "v";
  name += std::to_string(agpr ? a.first - reg::agpr0 : a.first);
  const unsigned left = a.by == arrival::counter::vm    ? static_cast<unsigned>(w.issued - a.number)
                        : a.by == arrival::counter::lds ? static_cast<unsigned>(w.issued_lds - a.number)
                                                        : 0;
  char pc[32];
  std::snprintf(pc, sizeof(pc), "0x%llx", static_cast<unsigned long long>(a.pc));
  f.address = a.pc;
  f.why = "the load at pc " + std::string(pc) + " into " + name + " and " + std::to_string(a.dwords - 1) +
          " registers behind it was not waited for; s_waitcnt " +
          (a.by == arrival::counter::vm ? "vmcnt(" : "lgkmcnt(") + std::to_string(left) + ") is missing";
}

void expect(wave& w, const operation& o, arrival::counter by, const operand& to, std::uint64_t number) {
  if (to.where != place::vgpr && to.where != place::sgpr) return;
  const std::uint64_t active = by == arrival::counter::scalar ? ~std::uint64_t{0} : w.exec();
  if (active) w.arrivals.push_back({by, to.where, to.index, loaded_dwords(o), number, w.pc - o.bytes, active});
}

}  // namespace

bool in_time(wave& w, const operation& o) {
  for (const arrival& a : w.arrivals)
    if (uses(a, o)) {
      refuse(w, o, a);
      return false;
    }
  if (o.counts_as_store) {
    ++w.issued_stores;
  } else if (by_vector(o)) {
    expect(w, o, arrival::counter::vm, o.dst, ++w.issued);
    // The text of a buffer atomic shows its data once, which are also what is returned.
    if (o.kind == count::scratch && o.scope.glc && o.name.find("_atomic_") != std::string_view::npos)
      expect(w, o, arrival::counter::vm, o.src[0], w.issued);
  } else if (o.kind == count::writeback) {
    ++w.issued;
  } else if (o.kind == count::lds) {
    expect(w, o, arrival::counter::lds, o.dst, ++w.issued_lds);
  } else if (o.kind == count::smem) {
    expect(w, o, arrival::counter::scalar, o.dst, ++w.issued_lds);
  }
  return true;
}

void wait_for_vector(wave& w, const operation& o, unsigned left) {
  const std::uint64_t through = w.issued > left ? w.issued - left : 0;
  refusal no;
  if (!w.of->memory->wait_vector(w.number, through, no)) {
    stop(w, o, no, 0);
    return;
  }
  std::erase_if(w.arrivals, [&](const arrival& a) { return a.by == arrival::counter::vm && a.number <= through; });
}

void wait_for_stores(wave& w, const operation& o, unsigned left) {
  refusal no;
  if (!w.of->memory->wait_stores(w.number, w.issued_stores > left ? w.issued_stores - left : 0, no)) stop(w, o, no, 0);
}

void wait_for_all(wave& w, const operation& o) {
  wait_for_vector(w, o, 0);
  if (w.issued_stores && !w.stopped) wait_for_stores(w, o, 0);
}

// Scalar loads come in any order: with one under way only lgkmcnt(0) says anything (MI200 ISA 4.4).
void wait_for_lgkm(wave& w, unsigned left) {
  const bool scalar =
      std::ranges::any_of(w.arrivals, [](const arrival& a) { return a.by == arrival::counter::scalar; });
  if (left && scalar) return;
  const std::uint64_t through = w.issued_lds > left ? w.issued_lds - left : 0;
  std::erase_if(w.arrivals, [&](const arrival& a) { return a.by != arrival::counter::vm && a.number <= through; });
}

}  // namespace amdgpu
