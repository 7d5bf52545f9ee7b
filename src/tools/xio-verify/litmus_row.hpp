// SPDX-License-Identifier: MIT
// A row of the report for one litmus test in one place.
#pragma once
#include <functional>

#include "tools/xio-verify/litmus.hpp"
#include "tools/xio-verify/rows.hpp"

namespace xio::verify {

struct litmus_place {
  std::string agents;       // "workgroups of one GPU"
  std::string data, flags;  // kinds of memory
  bool promised = true;     // for what is read and written
  bool promised_atomics = true;
  bool one_gpu = true;  // no party is on the host or on another GPU
};

// How much is done: batches of so many instances. Longer than so many seconds a test takes no further batch.
struct litmus_amount {
  std::uint32_t instances = 512, batches = 16, traffic = 8;
  double seconds = 0.4;
};
litmus_amount amount_of(bool quick);

// Whether the test says anything there: one GPU's orders hold nowhere else.
bool goes_with(litmus t, const litmus_place& place);

// Whether the weak outcome is forbidden there.
bool forbids(litmus t, const litmus_place& place);

// Runs batches by `batch`, which clears memory, plays, counts, and returns what went wrong or "". Writes the row, and
// returns whether it is as it must be.
bool add_litmus_row(row_writer& rows, litmus t, const litmus_place& place, const litmus_amount& amount,
                    const std::function<std::string(litmus_result&)>& batch);

}  // namespace xio::verify
