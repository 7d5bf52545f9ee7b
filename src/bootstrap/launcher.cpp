// SPDX-License-Identifier: MIT
#include "config.h"

#include "bootstrap/launcher.hpp"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "base/error.hpp"
#include "base/first_line.hpp"
#include "base/log.hpp"
#include "bootstrap/mpi_library.hpp"
#include "bootstrap/pmi2.hpp"

namespace xio::bootstrap {

namespace {

// A variable that holds no whole number counts as not set.
std::optional<int> number(const char* variable) {
  const char* text = variable != nullptr ? std::getenv(variable) : nullptr;
  if (text == nullptr) return {};
  const char* end = text + std::strlen(text);
  int value = 0;
  const auto [stop, ec] = std::from_chars(text, end, value);
  if (ec != std::errc() || stop != end || stop == text || value < 0) return {};
  return value;
}

struct launcher {
  const char* name;
  const char* rank;
  const char* sizes[2];    // of the whole step
  const char* local_size;  // of this machine: more than one are many, one may still be one of many
  const char* ranks_too;   // names that others use as well count only beside one of these
};

// The nearest first: each may have been started by one that follows.
constexpr launcher k_launchers[] = {
    {"Open MPI", "OMPI_COMM_WORLD_RANK", {"OMPI_COMM_WORLD_SIZE"}, "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr},
    {"MVAPICH", "MV2_COMM_WORLD_RANK", {"MV2_COMM_WORLD_SIZE"}, "MV2_COMM_WORLD_LOCAL_SIZE", nullptr},
    {"a launcher that speaks PMI", "PMI_RANK", {"PMI_SIZE"}, "PMI_LOCAL_SIZE", nullptr},
    {"PALS", "PALS_RANKID", {"PALS_SIZE", "PALS_NRANKS"}, "PALS_LOCAL_SIZE", nullptr},
    {"a launcher that speaks PMIx", "PMIX_RANK", {"PMIX_SIZE"}, "PMIX_LOCAL_SIZE", nullptr},
    {"jsrun", "JSM_NAMESPACE_RANK", {"JSM_NAMESPACE_SIZE"}, nullptr, nullptr},
    {"ALPS", "ALPS_APP_PE", {nullptr}, nullptr, nullptr},
    {"Flux", "FLUX_TASK_RANK", {"FLUX_JOB_SIZE"}, nullptr, nullptr},
    {"torchrun", "RANK", {"WORLD_SIZE"}, "LOCAL_WORLD_SIZE", "LOCAL_RANK"},
};

// torchrun's workers have its five variables. Programs that start PyTorch's ranks by other ways set the five as well,
// but not the name of a run.
bool has_torchs_variables() {
  return is_set("MASTER_ADDR") && number("MASTER_PORT") && number("RANK") && number("LOCAL_RANK") &&
         number("WORLD_SIZE").value_or(0) > 1;
}
bool started_by_torchrun() { return is_set("TORCHELASTIC_RUN_ID") && has_torchs_variables(); }

// MASTER_PORT is that of PyTorch's own store, so rank 0 listens at its neighbour.
std::string place_beside_torch() {
  constexpr int k_port_max = 65535;
  if (!has_torchs_variables()) return "";
  const std::string host = std::getenv("MASTER_ADDR");
  const int port = *number("MASTER_PORT");
  const bool v6 = host.find(':') != std::string::npos && host.front() != '[';
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", host, v6 ? "]" : "", port < k_port_max ? port + 1 : port - 1);
}

started_task read_launcher(const launcher& l) {
  started_task t{l.name, "", number(l.rank).value_or(-1), 0, 0};
  const auto prove = [&](const char* variable, int at_least) {
    if (at_least <= t.at_least) return;
    t.at_least = at_least;
    t.evidence = fmt::format("{}={}", variable, std::getenv(variable));
  };
  if (l.ranks_too != nullptr && t.rank < 0 && !number(l.ranks_too)) return t;
  for (const char* variable : l.sizes)
    if (const int size = number(variable).value_or(0); size > 0) {
      t.size = std::max(t.size, size);
      prove(variable, size);
    }
  if (const int size = number(l.local_size).value_or(0); size > 1) prove(l.local_size, size);
  if (t.rank > 0 && l.ranks_too == nullptr) prove(l.rank, t.rank + 1);
  return t;
}

// The first line of /proc/PID/NAME, or empty.
std::string process_text(int pid, const char* name) { return first_line(fmt::format("/proc/{}/{}", pid, name)); }

// A job that a task of srun's has submitted inherits the task's variables. But Slurm's daemon, the parent of what it
// starts, says in its title for which step it does so: "slurmstepd: [17.batch]", "[17.interactive]" or "[17.0]".
bool is_batch_script() {
  const auto task = number("SLURM_TASK_PID");
  const std::string stat = task ? process_text(*task, "stat") : "";
  const auto after_name = stat.rfind(')');  // proc(5): the name before may hold anything
  int parent = 0;
  if (after_name == std::string::npos || std::sscanf(stat.c_str() + after_name + 1, " %*c %d", &parent) != 1)
    return false;
  const std::string title = process_text(parent, "cmdline");
  const auto step = title.substr(0, title.find(']'));
  return title.starts_with("slurmstepd") && (step.ends_with(".batch") || step.ends_with(".interactive"));
}

// Slurm's variables are those of a job, of a step and of a task. A batch script or a shell of salloc has those of the
// job (SLURM_NTASKS) and is no task of srun's; the step's size is set for tasks alone.
started_task read_slurm() {
  started_task t{"Slurm", "", number("SLURM_PROCID").value_or(-1), 0, 0};
  if (t.rank < 0 || is_batch_script()) return t;
  const char* variable = "SLURM_STEP_NUM_TASKS";
  if (!number(variable) && (number("SLURM_STEP_ID") || number("SLURM_STEPID"))) variable = "SLURM_NTASKS";
  t.size = number(variable).value_or(0);
  t.at_least = std::max(t.size, t.rank > 0 ? t.rank + 1 : 0);
  if (t.at_least > t.size) variable = "SLURM_PROCID";
  if (t.at_least > 0) t.evidence = fmt::format("{}={}", variable, std::getenv(variable));
  return t;
}

// Slurm set the variables for this very process and not for one that started it, perhaps as one of others.
bool is_slurms_own_task() { return number("SLURM_TASK_PID") == static_cast<int>(getpid()); }

std::string how_to_start() {
#ifdef HAVE_MPI
  return "start with mpirun of " XIO_MPI_NAMES ", which this XIO was built for, or with xiorun";
#else
  return "start with xiorun";
#endif
}

[[noreturn]] void refuse_alone(const started_task& task, const char* cure) {
  const bool counted = task.rank >= 0 && task.size > 0;
  fail(XIO_ERR_CONFIG,
       "{} started {}{} tasks ({}), and this one would be alone in a world of one PE, as nothing connects it with the "
       "others; {}{}, or set XIO_TCP_ROOT, {}; XIO_BOOTSTRAP=local makes a world of one on purpose",
       task.launcher, task.size == task.at_least ? "" : "at least ", task.at_least, task.evidence, cure, how_to_start(),
       counted ? "XIO_TCP_KEY and XIO_BOOTSTRAP=tcp (rank and size are the launcher's)"
               : "XIO_TCP_RANK, XIO_TCP_SIZE and XIO_TCP_KEY");
}

}  // namespace

bool started_by_mpirun() { return is_set("OMPI_COMM_WORLD_SIZE") || is_set("PMIX_RANK") || is_set("PMI_RANK"); }

bool started_by_xiorun() { return is_set("XIO_RUN_PE"); }

std::optional<started_task> find_task() {
  // A launcher that has started torchrun has left its variables to all of torchrun's workers.
  if (started_by_torchrun()) return read_launcher(k_launchers[std::size(k_launchers) - 1]);
  const started_task slurm = read_slurm();
  if (slurm.at_least > 0 && is_slurms_own_task()) return slurm;
  for (const launcher& l : k_launchers)
    if (started_task t = read_launcher(l); t.at_least > 0) return t;
  if (slurm.at_least > 0) return slurm;
  return {};
}

bool started_with_others() {
  const auto task = find_task();
  return task && task->at_least > 1;
}

tcp_place place_for_tcp(const bootstrap_options& o) {
  if (!o.tcp_root.empty()) return {o.tcp_root, "XIO_TCP_ROOT"};
  return {place_beside_torch(), "MASTER_ADDR and MASTER_PORT"};
}

namespace {

// Open MPI ends the process below a launcher that speaks PMI-2 alone, unless it was built for that.
bool mpi_knows_pmi(const bootstrap_options& o) {
#ifdef HAVE_MPI
  return expected_mpi(o) != mpi_abi::open_mpi;
#else
  (void)o;
  return false;
#endif
}

}  // namespace

// xiorun is checked first: when it runs below mpirun its PEs inherit mpirun's variables, but xiorun started them.
// XIO_TCP_ROOT comes before PMI and PMIx, which Slurm may offer to all its tasks even if they shall connect otherwise.
way choose_way(const bootstrap_options& o) {
  if (started_by_xiorun() || started_by_torchrun()) return way::tcp;
  if (is_set("OMPI_COMM_WORLD_SIZE") || mpi_is_running()) return way::mpi;
  if (!o.tcp_root.empty()) return way::tcp;
  if (offered_slurms_pmi2() && !mpi_knows_pmi(o)) return way::pmi2;
  if (started_by_mpirun()) return way::mpi;
  return has_torchs_variables() ? way::tcp : way::none;
}

tcp_numbers numbers_for_tcp(const bootstrap_options& o) {
  tcp_numbers n{o.tcp_rank, o.tcp_size};
  if (!n.rank.empty() && !n.size.empty()) return n;
  const auto task = find_task();
  if (!task || task->rank < 0 || task->size == 0) return n;
  if (n.rank.empty()) n.rank = std::to_string(task->rank);
  if (n.size.empty()) n.size = std::to_string(task->size);
  log::debug("rank {} of {}: what is not set of XIO_TCP_RANK and XIO_TCP_SIZE is taken from {}", n.rank, n.size,
             task->launcher);
  return n;
}

void refuse_a_world_of_one_of_many(const channel& c, const bootstrap_options& o, const started_task& task) {
  if (c.size() != 1 || o.bootstrap == option::bootstrap::local || o.bootstrap == option::bootstrap::tcp) return;
  if (std::strcmp(c.name(), "mpi") != 0 && choose_way(o) == way::tcp) return;  // XIO_TCP_SIZE=1 asks for it
  if (task.at_least > 1) refuse_alone(task, "");
}

void refuse_mpi_that_would_abort(const bootstrap_options& o) {
#ifdef HAVE_MPI
  if (choose_way(o) != way::mpi || mpi_is_running() || expected_mpi(o) != mpi_abi::open_mpi) return;
  if (!is_set("SLURM_STEP_ID") || !is_set("PMI_RANK") || is_set("PMIX_RANK") || is_set("OMPI_COMM_WORLD_SIZE")) return;
  const auto task = find_task();
  if (task && task->at_least > 1)
    refuse_alone(*task, "use srun --mpi=pmix, or XIO_BOOTSTRAP=mpi if this Open MPI was built with Slurm's PMI, or ");
#else
  (void)o;
#endif
}

}  // namespace xio::bootstrap
