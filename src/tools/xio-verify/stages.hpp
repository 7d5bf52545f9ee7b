// SPDX-License-Identifier: MIT
// The stages of xio-verify, in their order: what each runs, with how many PEs, and how long it may take.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace xio::verify {

// The program that runs, and so the form of its results.
enum class stage_kind {
  sections,  // xio-info --json
  worker,    // xio-verify --pe, alone
  pes,       // xio-verify --pe below the launcher
  perf,      // xio-perf --format json, below the launcher or alone
};

// On which GPUs PEs run.
enum class stage_gpus { any, one, several, many };

struct stage {
  const char* name;
  const char* title;
  stage_kind kind;
  stage_gpus gpus;
  const char* what;   // words for the program
  const char* route;  // XIO_ROUTE, or ""
  std::uint32_t seconds;
  bool needs_gpu = true, needs_drive = false;
};

const std::vector<stage>& stages();
const stage* find_stage(const std::string& name);
std::vector<std::string> stage_names();
std::string list_of_stages();

}  // namespace xio::verify
