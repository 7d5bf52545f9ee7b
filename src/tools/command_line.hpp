// SPDX-License-Identifier: MIT
// What the tools' command lines have in common: options with words, sizes and numbers as arguments, and how a wrong
// line is refused: one sentence with the word that was probably meant, exit status 2, nothing done. CLI11 parses; its
// header takes seconds to compile, so command_line.cpp alone includes it.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "tools/refuse.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace xio::tools {

// Thrown by what takes an option's argument: the line is refused with this sentence.
class wrong_word : public std::runtime_error {
 public:
  wrong_word(const std::string& option, const std::string& why) : std::runtime_error(option + ": " + why) {}
};

// As CLI11 reads sizes. Nothing for what is no size, does not fit 64 bits, or has 20 digits. Units: k, M, G, T, P, E,
// in either case, also as kB or KiB.
std::optional<std::uint64_t> size_of_text(const std::string& text);

// The size that a word says; throws wrong_word, for the option `name`, unless it is in low .. high.
std::uint64_t size_in(const std::string& name, const std::string& word, std::uint64_t low, std::uint64_t high);

// An option that was added.
class option {
 public:
  explicit option(CLI::Option* at) : at_(at) {}
  option& type(const std::string& name);          // of its argument, in --help
  option& default_text(const std::string& text);  // in --help
  option& may_stand_alone();                      // its argument may be left out
  option& once_each();                            // can be given again, with one argument each time
  option& excludes(const option& other);
  option& hidden();  // not in --help
  bool given() const;

 private:
  CLI::Option* at_;
};

// A command, or a subcommand of one, with its options. The variable that gets an option's argument must outlive the
// command.
class command {
 public:
  explicit command(CLI::App* at) : at_(at) {}
  std::string name() const;
  bool given(const char* flag) const;
  std::vector<command> given_subcommands() const;

  command subcommand(const std::string& name, const std::string& text);
  // Flags of the command above are taken behind this subcommand, too.
  void take_flags_of_parent();

  option flag(const std::string& flags, bool& value, const std::string& text);
  option word(const std::string& flags, std::string& value, const std::string& text);
  option words(const std::string& flags, std::vector<std::string>& values, const std::string& text);
  // `take` gets each argument, and may throw wrong_word.
  option call(const std::string& flags, std::function<void(const std::string&)> take, const std::string& text);
  // A size in low .. high. `value` holds the default.
  option size(const std::string& flags, std::uint64_t& value, const std::string& text, std::uint64_t low,
              std::uint64_t high);
  // A whole number in low .. high, decimal or as 0x10. `value` holds the default. Not CLI11's own, which takes 010 for
  // 8 and no text for 0, and calls what is too large for the type inconvertible.
  template <class Number>
  option number(const std::string& flags, Number& value, const std::string& text,
                std::type_identity_t<Number> low = std::numeric_limits<Number>::min(),
                std::type_identity_t<Number> high = std::numeric_limits<Number>::max()) {
    const auto take = [&value](std::uint64_t n) { value = static_cast<Number>(n); };
    return number_of(flags, text, static_cast<std::int64_t>(low), static_cast<std::uint64_t>(high), take)
        .default_text(std::to_string(value));
  }
  template <class Number>
  option number(const std::string& flags, std::optional<Number>& value, const std::string& text,
                std::type_identity_t<Number> low = std::numeric_limits<Number>::min(),
                std::type_identity_t<Number> high = std::numeric_limits<Number>::max()) {
    const auto take = [&value](std::uint64_t n) { value = static_cast<Number>(n); };
    return number_of(flags, text, static_cast<std::int64_t>(low), static_cast<std::uint64_t>(high), take);
  }

 protected:
  CLI::App* at_;

 private:
  // The part of number() that is no template: `take` gets the number in two's complement.
  option number_of(const std::string& flags, const std::string& text, std::int64_t low, std::uint64_t high,
                   std::function<void(std::uint64_t)> take);
};

// The whole of a tool's command line.
class command_line : public command {
 public:
  command_line(const std::string& text, const std::string& name);
  ~command_line();
  command_line& operator=(command_line&&) = delete;

  void footer(const std::string& text);
  void version(const std::string& text);

  // Parses, of subcommands too. Returns the status to exit with after --help, --version or a wrong line, or nothing. Do
  // not mark options as required: a misspelt one would then be called missing. Words that no option takes are refused.
  std::optional<int> parse(int argc, char** argv);
  // The same of a line in which a program with words of its own stands behind the options: `rest` gets these.
  std::optional<int> parse_before_program(std::vector<std::string> words, std::vector<std::string>& rest);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace xio::tools
