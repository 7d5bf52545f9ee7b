// SPDX-License-Identifier: MIT
#include "tools/xio-verify/litmus_row.hpp"

#include <chrono>
#include <cstring>

namespace xio::verify {
namespace {
using clock = std::chrono::steady_clock;
double since(clock::time_point begin) { return std::chrono::duration<double>(clock::now() - begin).count(); }
}  // namespace

litmus_amount amount_of(bool quick) {
  litmus_amount a;
  if (quick) a = {16, 64, 0, 0.05};
  return a;
}

bool goes_with(litmus t, const litmus_place& place) { return place.one_gpu || !facts_of(t).in_gpu; }

bool forbids(litmus t, const litmus_place& place) {
  const litmus_facts& f = facts_of(t);
  return !f.control && place.promised && (!f.atomics || place.promised_atomics);
}

bool add_litmus_row(row_writer& rows, litmus t, const litmus_place& place, const litmus_amount& amount,
                    const std::function<std::string(litmus_result&)>& batch) {
  const litmus_facts& f = facts_of(t);
  litmus_result r;
  std::string why;
  const clock::time_point begin = clock::now();
  for (std::uint32_t i = 0; i < amount.batches && why.empty() && (i == 0 || since(begin) < amount.seconds); ++i)
    why = batch(r);
  if (why.empty() && r.not_run != 0) why = "a party waited for another one in vain";
  const bool forbidden = forbids(t, place);
  const bool good = why.empty() && (!forbidden || r.weak == 0);
  json row{{"test", f.test},     {"way", f.way},         {"agents", place.agents},
           {"data", place.data}, {"flags", place.flags}, {"weak_outcome", forbidden ? "forbidden" : "allowed"},
           {"runs", r.runs},     {"weak", r.weak},       {"outcomes", r.outcomes}};
  if (std::strlen(f.stands_for) != 0) row["stands_for"] = f.stands_for;
  if (r.not_run != 0) row["not_run"] = r.not_run;
  row["seconds"] = since(begin);
  row["status"] = good ? "passed" : "failed";
  if (!good) row["why"] = why.empty() ? "an outcome that is forbidden was seen" : why;
  rows.add(row);
  return good;
}

}  // namespace xio::verify
