// SPDX-License-Identifier: MIT
// Typed view of the environment, made from options.def.
#pragma once
#include <optional>

#include "base/option_words.hpp"
#include "base/secret_text.hpp"

namespace xio {

// Kinds of options.def that are no enum of option_words.hpp.
namespace option {
using TEXT = std::string;
using SIZE = std::uint64_t;
using UINT = std::uint64_t;
using AUTO_UINT = std::optional<std::uint64_t>;  // none: auto
using SECRET = secret_text;
}  // namespace option

// The environment's variable; null if it is not set or empty, which counts as that.
const char* set_variable(const char* name);
inline bool is_set(const char* variable) { return set_variable(variable) != nullptr; }

// A variable that a program sets for one world; an empty value stands for the default.
struct setting {
  std::string variable, value;
};

// The options of each room. A function takes the struct of its room, so that its signature tells what it reads. Those
// of several rooms stand in a virtual base: options has them once.
#define XIO_FIELD(group, field, variable, kind, fallback, limits, text) option::kind field{};

struct deadline_options {
#define XIO_DEADLINE_OPTION XIO_FIELD
#include "base/options.def"
};

// Of every engine, software device or not.
struct engine_options : virtual deadline_options {
  // Copied and never moved: each room's move of what they share would take it from the next.
  engine_options() = default;
  engine_options(const engine_options&) = default;
  engine_options& operator=(const engine_options&) = default;
#define XIO_ENGINE_OPTION XIO_FIELD
#include "base/options.def"
};

// Of all that listens at TCP ports, and connects to them.
struct network_options {
  // Copied and never moved, as engine_options.
  network_options() = default;
  network_options(const network_options&) = default;
  network_options& operator=(const network_options&) = default;
#define XIO_NETWORK_OPTION XIO_FIELD
#include "base/options.def"
};

struct bootstrap_options : virtual deadline_options, virtual network_options {
#define XIO_BOOTSTRAP_OPTION XIO_FIELD
#include "base/options.def"
};

struct heap_options : virtual engine_options {
#define XIO_HEAP_OPTION XIO_FIELD
#include "base/options.def"
};

struct team_options {
#define XIO_TEAM_OPTION XIO_FIELD
#include "base/options.def"
};

struct rdma_options : virtual engine_options, virtual network_options {
#define XIO_RDMA_OPTION XIO_FIELD
#include "base/options.def"
};

struct sdma_options : virtual engine_options {
#define XIO_SDMA_OPTION XIO_FIELD
#include "base/options.def"
};

struct nvme_options : virtual engine_options {
#define XIO_NVME_OPTION XIO_FIELD
#include "base/options.def"
};

// Of the host platform.
struct host_options {
#define XIO_HOST_OPTION XIO_FIELD
#include "base/options.def"
};

// Of src/ctx alone.
struct ctx_options {
#define XIO_CTX_OPTION XIO_FIELD
#include "base/options.def"
};
#undef XIO_FIELD

struct options : bootstrap_options,
                 heap_options,
                 team_options,
                 rdma_options,
                 sdma_options,
                 nvme_options,
                 host_options,
                 ctx_options {
  // Reads and checks every variable, those of `given` instead of the environment's; throws XIO_ERR_CONFIG with
  // variable, value, and what is allowed, for a name in `given` that no row has too, and for a variable that has
  // another name now. From then on the log is as its level says. A set XIO_ variable that no row names is reported once
  // as a warning with the nearest name.
  static options from_environment(const std::vector<setting>& given = {});

  // The same, but each variable that is wrong is as if it were not set, and nothing is reported; for what has to go on
  // after from_environment threw.
  static options right_values(const std::vector<setting>& given = {});

  // Defaults only; for tests and tools.
  static options defaults();
};

// The readers that an option is for, in the order in which documents show them.
enum class option_group { user, transport, test };

// One row of the table, for printing.
struct option_row {
  option_group group;
  const char* field;
  const char* variable;
  const char* kind;  // "SIZE", "UINT", "AUTO_UINT", "TEXT", "SECRET", or "CHOICE" for an enum
  const char* fallback;
  const char* limits;
  const char* text;
};
const option_row* option_rows(std::size_t* count);

// "64k" -> 65536; throws XIO_ERR_CONFIG naming `what`. k, M, G, T are powers of 1024.
std::uint64_t parse_size(const std::string& text, const std::string& what);

// A variable that earlier versions read under another name. Kept for one version after the change.
struct renamed_variable {
  const char* before;
  const char* now;
  const char* since;  // the version that changed it
};

// The sentence for a variable that was renamed, or "".
std::string say_new_name(std::string_view variable, std::span<const renamed_variable> renamed);

}  // namespace xio
