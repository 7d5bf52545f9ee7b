// SPDX-License-Identifier: MIT
// What the tools' command lines have in common: sizes as arguments, and how a wrong line is refused: one sentence with
// the word that was probably meant, exit status 2, nothing done.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace xio::tools {

constexpr int k_exit_usage = 2;

// "xio-info: SENTENCE; see xio-info --help" on standard error; answers k_exit_usage.
int refuse(const std::string& command, const std::string& sentence);

// An option whose argument is a size (size_text.hpp) in low .. high. `value` holds the default.
CLI::Option* add_size(CLI::App& app, const std::string& flags, std::uint64_t& value, const std::string& text,
                      std::uint64_t low, std::uint64_t high);

// Parses, of subcommands too. Answers the status to exit with after --help, --version or a wrong line, or nothing. Do
// not mark options as required: a misspelt one would then be called missing. Words that no option takes are refused.
std::optional<int> parse(CLI::App& app, int argc, char** argv);

}  // namespace xio::tools
