// SPDX-License-Identifier: MIT
// What the tools' command lines have in common: sizes and numbers as arguments, and how a wrong line is refused: one
// sentence with the word that was probably meant, exit status 2, nothing done.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "tools/refuse.hpp"

namespace xio::tools {

// As CLI11 reads sizes. Nothing for what is no size, does not fit 64 bits, or has 20 digits. Units: k, M, G, T, P, E,
// in either case, also as kB or KiB.
std::optional<std::uint64_t> size_of_text(const std::string& text);

// The size that a word says; throws CLI11's error, for the option `name`, unless it is in low .. high.
std::uint64_t size_in(const std::string& name, const std::string& word, std::uint64_t low, std::uint64_t high);

// An option whose argument is a size in low .. high. `value` holds the default.
CLI::Option* add_size(CLI::App& app, const std::string& flags, std::uint64_t& value, const std::string& text,
                      std::uint64_t low, std::uint64_t high);

// The part of add_number that is no template: `take` gets the number in two's complement.
CLI::Option* add_number_of(CLI::App& app, const std::string& flags, const std::string& text, std::int64_t low,
                           std::uint64_t high, std::function<void(std::uint64_t)> take);

// An option whose argument is a whole number in low .. high, decimal or as 0x10. `value` holds the default. Not
// CLI11's own, which takes 010 for 8 and no text for 0, and calls what is too large for the type inconvertible.
template <class Number>
CLI::Option* add_number(CLI::App& app, const std::string& flags, Number& value, const std::string& text,
                        std::type_identity_t<Number> low = std::numeric_limits<Number>::min(),
                        std::type_identity_t<Number> high = std::numeric_limits<Number>::max()) {
  const auto take = [&value](std::uint64_t n) { value = static_cast<Number>(n); };
  return add_number_of(app, flags, text, static_cast<std::int64_t>(low), static_cast<std::uint64_t>(high), take)
      ->default_str(std::to_string(value));
}
template <class Number>
CLI::Option* add_number(CLI::App& app, const std::string& flags, std::optional<Number>& value, const std::string& text,
                        std::type_identity_t<Number> low = std::numeric_limits<Number>::min(),
                        std::type_identity_t<Number> high = std::numeric_limits<Number>::max()) {
  const auto take = [&value](std::uint64_t n) { value = static_cast<Number>(n); };
  return add_number_of(app, flags, text, static_cast<std::int64_t>(low), static_cast<std::uint64_t>(high), take);
}

// Parses, of subcommands too. Returns the status to exit with after --help, --version or a wrong line, or nothing. Do
// not mark options as required: a misspelt one would then be called missing. Words that no option takes are refused.
std::optional<int> parse(CLI::App& app, int argc, char** argv);

}  // namespace xio::tools
