// SPDX-License-Identifier: MIT
#include "tools/xio-perf/settings.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>

#include "config.h"
#include "ctx/stripes.hpp"
#include "tools/command_line.hpp"
#include "tools/near_miss.hpp"
#include "tools/overwrite.hpp"
#include "tools/size_text.hpp"
#include "tools/standard_streams.hpp"
#include "tools/words.hpp"
#include "transport/nvme/file_name.hpp"

namespace xio::perf {
namespace {

// Names in the order in which help lists them, the preferred one of a value first.
template <class T>
struct named {
  const char* name;
  T value;
};
template <class T>
using names = std::span<const named<T>>;

constexpr named<scope> k_scopes[] = {{"thread", scope::thread}, {"wave", scope::wave},       {"block", scope::block},
                                     {"warp", scope::wave},     {"workgroup", scope::block}, {"all", scope::thread}};

constexpr named<atomic_op> k_atomics[] = {{"inc", atomic_op::inc},
                                          {"add", atomic_op::add},
                                          {"set", atomic_op::set},
                                          {"and", atomic_op::bit_and},
                                          {"or", atomic_op::bit_or},
                                          {"xor", atomic_op::bit_xor},
                                          {"fetch", atomic_op::fetch},
                                          {"swap", atomic_op::swap},
                                          {"compare_swap", atomic_op::compare_swap},
                                          {"fetch_inc", atomic_op::fetch_inc},
                                          {"fetch_add", atomic_op::fetch_add},
                                          {"fetch_and", atomic_op::fetch_and},
                                          {"fetch_or", atomic_op::fetch_or},
                                          {"fetch_xor", atomic_op::fetch_xor},
                                          {"all", atomic_op::inc}};

struct value_type {
  std::uint32_t bytes;
  bool floating;
};
constexpr named<value_type> k_value_types[] = {
    {"int", {4, false}},     {"uint", {4, false}},     {"int32", {4, false}},     {"uint32", {4, false}},
    {"int32_t", {4, false}}, {"uint32_t", {4, false}}, {"float", {4, true}},      {"long", {8, false}},
    {"ulong", {8, false}},   {"longlong", {8, false}}, {"ulonglong", {8, false}}, {"int64", {8, false}},
    {"uint64", {8, false}},  {"int64_t", {8, false}},  {"uint64_t", {8, false}},  {"size", {8, false}},
    {"ptrdiff", {8, false}}, {"double", {8, true}},    {"fp16", {2, true}},       {"bf16", {2, true}}};

constexpr named<xio_route_t> k_routes[] = {
    {"auto", XIO_ROUTE_AUTO}, {"direct", XIO_ROUTE_DIRECT}, {"rdma", XIO_ROUTE_RDMA}, {"sdma", XIO_ROUTE_SDMA}};

constexpr named<tools::table_format> k_formats[] = {
    {"table", tools::table_format::table}, {"csv", tools::table_format::csv}, {"json", tools::table_format::json}};

// NVSHMEM's, whose put tests can also get.
constexpr named<bool> k_directions[] = {{"write", false}, {"read", true}};
constexpr named<bool> k_accesses[] = {{"sequential", false}, {"scattered", true}};

constexpr named<xio_reduction> k_reductions[] = {{"sum", xio_reduction::sum},     {"prod", xio_reduction::prod},
                                                 {"min", xio_reduction::min},     {"max", xio_reduction::max},
                                                 {"and", xio_reduction::bit_and}, {"or", xio_reduction::bit_or},
                                                 {"xor", xio_reduction::bit_xor}};

template <class T>
std::string list_of(names<T> all) {
  std::string text;
  for (const auto& [name, value] : all) text += (text.empty() ? "" : "|") + std::string(name);
  return text;
}

// An option that takes one of some names, or several of them with commas.
template <class T>
void add_choice(tools::command& app, const std::string& flags, names<T> all, const std::string& text, bool several,
                std::function<void(const std::string&, const T&)> take) {
  const auto choose = [all, flags, several, take](const std::string& given) {
    std::vector<std::string> known;
    for (const auto& [name, value] : all) known.push_back(name);
    for (const std::string& word : several ? tools::split(given) : std::vector{given}) {
      const auto at = std::ranges::find(known, word);
      if (at == known.end())
        throw tools::wrong_word(flags.substr(flags.rfind(',') + 1),
                                "'" + word + "' is not one of " + list_of(all) + tools::did_you_mean(word, known));
      take(word, all[static_cast<std::size_t>(at - known.begin())].value);
    }
  };
  app.call(flags, choose, text + " (" + list_of(all) + ")").type("NAME");
}

void add_sizes(tools::command& app, settings& s) {
  const auto low = app.size("-b,--min_size", s.smallest, "smallest size; of a drive's tests a multiple of its block", 1,
                            k_most_bytes)
                       .default_text("");
  const auto high = app.size("-e,--max_size", s.largest, "largest size", 1, k_most_bytes).default_text("");
  const auto step = app.number("-f,--step", s.factor, "each size is the last one times this", 2, 1024);
  const auto list = [&s](const std::string& given) {
    for (const std::string& word : tools::split(given))
      s.sizes.push_back(tools::size_in("--sizes", word, 1, k_most_bytes));
    std::ranges::sort(s.sizes);
    s.sizes.erase(std::unique(s.sizes.begin(), s.sizes.end()), s.sizes.end());
  };
  app.call("--sizes", list, "these sizes and no others; several with commas")
      .type("SIZE")
      .excludes(low)
      .excludes(high)
      .excludes(step);
}

void add_shape(tools::command& app, settings& s) {
  // Without them it is not 0 that is taken.
  const auto number = [&](const char* flags, std::uint32_t& value, const char* text, std::uint32_t high) {
    app.number(flags, value, text, 1, high).default_text("");
  };
  number("-n,--iters", s.iterations,
         "iterations; of bandwidth tests, of each launch; usually 200, on a GPU 100 for bandwidth", 10000000);
  app.number("-w,--warmup_iters", s.warm_up, "iterations before those that count", 0, 10000000);
  number("-r,--repetitions,--repeat", s.repeat,
         "launches of a bandwidth test, each a sample, and one before that does not count; on a GPU 11", 100000);
  number("-c,--ctas", s.ctas, "workgroups of bandwidth and drive tests; on a GPU 32, and 1 for drives", 65535);
  number("-t,--threads_per_cta", s.threads, "threads of each workgroup; on a GPU 256, and 32 for drives", 1024);
  add_choice<scope>(
      app, "-s,--scope", k_scopes,
      "the threads that call together; several with commas; otherwise thread, and block for put_bw, get_bw and "
      "collectives with data",
      true, [&](const std::string& name, scope v) {
        if (name != "all") s.scopes.push_back(v);
        if (name == "all") s.scopes.insert(s.scopes.end(), {scope::thread, scope::wave, scope::block});
      });
}

void add_ops(tools::command& app, settings& s) {
  add_choice<value_type>(app, "-d,--datatype", k_value_types, "type of the values of p, g and atomics", false,
                         [&](const auto&, const value_type& v) {
                           s.element = v.bytes;
                           s.floating = v.floating;
                         });
  add_choice<atomic_op>(app, "-a,--atomic_op", k_atomics,
                        "which atomic; several with commas; otherwise fetch_add, and add for atomic_bw", true,
                        [&](const std::string& name, atomic_op v) {
                          if (name != "all") s.atomics.push_back(v);
                          for (const auto& each : names<atomic_op>(k_atomics).first(std::size(k_atomics) - 1))
                            if (name == "all") s.atomics.push_back(each.value);
                        });
  add_choice<xio_reduction>(app, "-o,--reduce_op", k_reductions, "how reduces combine words of 4 bytes; otherwise sum",
                            false, [&](const auto&, xio_reduction v) { s.reduction = v; });
  const auto teams = [&s](const std::string& given) {
    for (const std::string& word : tools::split(given)) {
      const std::uint64_t n = tools::size_in("--team", word, 1, 1 << 20);
      s.teams.push_back(static_cast<std::uint32_t>(n));
    }
  };
  app.call("--team", teams,
           "members of the teams of collectives, the first of all PEs; several with commas; otherwise all")
      .type("NUMBER");
  add_choice<bool>(app, "--dir", k_directions, "refuses tests that go the other way", false,
                   [&](const auto&, bool reads) { s.reads = reads; });
  app.flag("--bidir", s.bidirectional, "every PE sends at the same time");
  app.flag("--report_msgrate,--msgrate", s.message_rate, "messages per second as well");
  app.flag("--lockstep", s.lockstep, "bandwidth tests: workgroups wait for each other after every iteration");
}

void add_ways(tools::command& app, settings& s) {
  add_choice<xio_route_t>(app, "--route", k_routes, "forces the way of all ops; otherwise XIO_ROUTE", false,
                          [&](const auto&, xio_route_t v) { s.route = v; });
  app.word("--storage", s.storage, "drive of nvme_read and nvme_write, as \"file:PATH\"; otherwise a file of its own")
      .type("NAME");
  add_choice<bool>(app, "--access", k_accesses, "order of the places of nvme_read and nvme_write", false,
                   [&](const auto&, bool scattered) { s.scattered = scattered; });
  app.flag("--direct", s.direct, "nvme_read and nvme_write of a file go past the page cache, where that can be");
  app.flag("--i-know", s.i_know,
           "nvme_write may write over what is on that drive, or over a file's data that no test wrote");
  add_choice<tools::table_format>(app, "--format", k_formats, "what is printed", false,
                                  [&](const auto&, tools::table_format v) { s.format = v; });
  app.flag("--wide", s.wide, "the table has all its columns, also beyond 80 characters");
  app.call(
         "--trace", [](const std::string& file) { setenv("XIO_TRACE", file.c_str(), 1); },
         "when ops began and ended, as XIO_TRACE has it, one file a PE")
      .type("FILE");
  app.word("--plot", s.plot, "draws medians and p99, or bandwidths, into this PNG file, by gnuplot").type("FILE.png");
}

bool is_read(const test& t) {
  using enum test_id;
  return t.id == get_lat || t.id == get_staged_lat || t.id == g_lat || t.id == get_bw || t.id == g_bw ||
         t.id == nvme_read;
}

bool is_atomic(const test& t) { return t.id == test_id::atomic_lat || t.id == test_id::atomic_bw; }

// Returns what nvme_write would destroy, or an empty text.
std::string lost_by_writing(const settings& s) {
  if (s.storage.empty() || s.i_know) return "";
  for (const std::string& name : member_names(s.storage)) {
    if (!name.starts_with("file:"))
      return fmt::format("{} is a drive, and nvme_write would write over what is on it", name);
    std::string lost = tools::lost_by_writing(nvme::parse_file_name(name.substr(5), name).path);
    if (!lost.empty()) return lost;
  }
  return "";
}

// Whether `all` includes a test, given the other options: it is left out where objection() would refuse it by name.
bool is_in_all(const settings& s, const test& t) {
  if (s.reads && is_read(t) != *s.reads) return false;
  if (s.bidirectional && t.how != shape::latency && t.how != shape::bandwidth) return false;
  if (s.floating && is_atomic(t)) return false;
  if (t.id == test_id::nvme_write && !lost_by_writing(s).empty()) return false;
  return t.id != test_id::sdma_copy || s.route == XIO_ROUTE_AUTO || s.route == XIO_ROUTE_SDMA;
}

// Finds the tests of the command line; returns what is wrong with their names, or an empty text.
std::string choose_tests(const std::vector<std::string>& wanted, settings& s) {
  for (const std::string& list : wanted)
    for (const std::string& name : tools::split(list)) {
      const test* t = find_test(name);
      if (name == "all")
        s.all = true;
      else if (t == nullptr)
        return "there is no test '" + name + "'" + tools::did_you_mean(name, test_names());
      else
        s.tests.push_back(t);
    }
  if (s.all && !s.tests.empty()) return "'all' stands for every test; leave the other names out";
  if (!s.all && s.tests.empty()) return "no test was named";
  for (const test& t : catalogue())
    if (s.all && is_in_all(s, t)) s.tests.push_back(&t);
  return "";
}

// Says which options contradict each other, or returns an empty text.
std::string objection(const settings& s) {
  if (s.smallest != 0 && s.largest != 0 && s.smallest > s.largest)
    return fmt::format("--min_size {} is above --max_size {}", tools::text_of_size(s.smallest),
                       tools::text_of_size(s.largest));
  const auto asked = [&](auto&& which) { return std::ranges::any_of(s.tests, which); };
  const bool atomic = asked([](auto* t) { return is_atomic(*t); });
  const bool storage = asked([](auto* t) { return t->how == shape::storage; });
  if (!s.atomics.empty() && !atomic) return "--atomic_op goes with atomic_lat and atomic_bw";
  if (s.floating && atomic)
    return "--datatype fractions are not for atomic_lat and atomic_bw; atomics of other than whole numbers "
           "would measure the same";
  if (s.reduction && !asked([](auto* t) { return t->reduces(); }))
    return "--reduce_op goes with reduce and reduce_scatter";
  if (!s.teams.empty() && !asked([](auto* t) { return t->of_team(); }))
    return "--team goes with collectives of teams, and with team_create";
  if (!s.storage.empty() && !storage) return "--storage goes with nvme_read and nvme_write";
  if (s.scattered && !storage) return "--access goes with nvme_read and nvme_write";
  if (s.direct && !storage) return "--direct goes with nvme_read and nvme_write";
  const bool writes = asked([](auto* t) { return t->id == test_id::nvme_write; });
  if (std::string lost = writes ? lost_by_writing(s) : ""; !lost.empty()) return lost + "; say --i-know if that may be";
  if (s.i_know && !writes) return "--i-know goes with nvme_write";
  for (const test* t : s.tests)
    if (s.reads && is_read(*t) != *s.reads)
      return fmt::format("{} does not {}; --dir goes with {}", t->name, *s.reads ? "read" : "write",
                         *s.reads ? "get, g and nvme_read" : "the tests that put, store or write");
  if (s.bidirectional && asked([](auto* t) { return t->how != shape::latency && t->how != shape::bandwidth; }))
    return "--bidir is for tests in which one PE sends to another";
  if (s.lockstep && !asked([](auto* t) { return t->how == shape::bandwidth; }))
    return "--lockstep goes with bandwidth tests";
  if (s.repeat != 0 && !asked([](auto* t) { return t->how == shape::bandwidth; }))
    return "--repeat goes with bandwidth tests";
  if (s.route != XIO_ROUTE_AUTO && s.route != XIO_ROUTE_SDMA &&
      asked([](auto* t) { return t->id == test_id::sdma_copy; }))
    return "sdma_copy goes by --route sdma and no other";
  if (s.wide && s.format != tools::table_format::table) return "--wide goes with --format table: csv and json have all";
  if (s.plot.empty()) return "";
  if (!asked([](auto* t) { return t->largest != 0; }))
    return "--plot draws over sizes, and a barrier has none; name a test that moves bytes beside it";
  const auto folder = std::filesystem::path(s.plot).parent_path();
  if (access(folder.empty() ? "." : folder.c_str(), W_OK) != 0)
    return fmt::format("--plot {}: its folder is not there or not writable", s.plot);
  // A file that stands there is replaced.
  std::error_code none;
  if (std::filesystem::exists(s.plot, none) && !std::filesystem::is_regular_file(s.plot, none))
    return fmt::format("--plot {}: that is no file; give the name of a new PNG, or of one to replace", s.plot);
  if (std::ifstream old(s.plot); old && old.peek() != EOF && old.peek() != 0x89)
    return fmt::format("--plot {}: that file is no PNG, and stays as it is; name another", s.plot);
  if (tools::find_on_path("gnuplot").empty())
    return "--plot needs gnuplot, which is not on PATH; install it (Debian: gnuplot-nox)";
  return "";
}

std::string list_of_tests(const char* indent) {
  std::string text;
  for (const test& t : catalogue()) text += fmt::format("{}{:<20} {}\n", indent, t.name, t.text);
  return text;
}

std::string footer() {
  return "Tests:\n" + list_of_tests("  ") + fmt::format("  {:<20} {}\n", "all", "every test that can run here") +
         "\nRun it with two PEs: mpirun -np 2 xio-perf put_lat, or xiorun -n 2 xio-perf put_lat. nvme_read, "
         "nvme_write\n"
         "and sdma_copy run alone; collectives take any number. The manual is xio-perf(1).";
}

}  // namespace

const char* name_of(scope s) { return k_scopes[static_cast<std::size_t>(s)].name; }
const char* name_of(atomic_op op) { return k_atomics[static_cast<std::size_t>(op)].name; }
const char* name_of(xio_reduction op) { return k_reductions[static_cast<std::size_t>(op)].name; }
bool fetches(atomic_op op) { return op >= atomic_op::fetch; }

std::optional<int> parse(int argc, char** argv, settings& s) {
  tools::command_line app("Measures XIO: latency, bandwidth and message rate of its ops, called by kernels.",
                          "xio-perf");
  app.footer(footer());
  app.version(std::string("xio-perf of XIO ") + PACKAGE_VERSION);
  std::vector<std::string> wanted;
  app.words("test", wanted, "one or more of those below, with commas or blanks");
  bool list = false;
  app.flag("--list", list, "print the tests, one a line, and leave");
  add_sizes(app, s);
  add_shape(app, s);
  add_ops(app, s);
  add_ways(app, s);
  if (const auto status = app.parse(argc, argv)) return status;
  if (list) {
    std::fputs(list_of_tests("").c_str(), stdout);
    return tools::ended("xio-perf", 0);
  }
  if (const std::string wrong = choose_tests(wanted, s); !wrong.empty()) return tools::refuse("xio-perf", wrong);
  if (const std::string wrong = objection(s); !wrong.empty()) return tools::refuse("xio-perf", wrong);
  return std::nullopt;
}

}  // namespace xio::perf
