// SPDX-License-Identifier: MIT
#include "tools/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <utility>

#include "tools/near_miss.hpp"
#include "tools/size_text.hpp"
#include "tools/standard_streams.hpp"

namespace xio::tools {
namespace {

void take_unknown_words(CLI::App& app) {
  app.allow_extras();
  for (CLI::App* sub : app.get_subcommands([](CLI::App*) { return true; })) take_unknown_words(*sub);
}

// In two's complement, or nothing.
std::optional<std::uint64_t> number_in(const std::string& text, std::int64_t low, std::uint64_t high) {
  const std::size_t sign = text.starts_with('-') ? 1 : 0;
  const bool hex = text.compare(sign, 2, "0x") == 0;
  const char* end = text.data() + text.size();
  std::uint64_t n = 0;
  const auto [rest, wrong] = std::from_chars(text.data() + sign + (hex ? 2 : 0), end, n, hex ? 16 : 10);
  if (wrong != std::errc{} || rest != end) return std::nullopt;
  const std::uint64_t lowest = static_cast<std::uint64_t>(low);
  if (sign != 0) return low < 0 && n <= 0 - lowest ? std::optional(0 - n) : std::nullopt;
  return n <= high && (low < 0 || n >= lowest) ? std::optional(n) : std::nullopt;
}

// Digits without a leading zero, few enough for 64 bits, and letters. CLI11 alone reads -1 as the largest number, 010
// as 8 and k as 1024, and cuts what is too large.
bool is_size(const std::string& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const bool number = digits != 0 && digits < 20 && (text[0] != '0' || digits == 1);
  return number && std::all_of(text.begin() + static_cast<std::ptrdiff_t>(digits), text.end(),
                               [](unsigned char c) { return std::isalpha(c) != 0; });
}

// As errors name it: the last of an option's names.
std::string name_of(const std::string& flags) { return flags.substr(flags.rfind(',') + 1); }

// The subcommand that the line had got to, and all that may stand there.
const CLI::App& innermost(const CLI::App& app) {
  const auto subs = app.get_subcommands();
  return subs.empty() ? app : innermost(*subs.back());
}

std::vector<std::string> flags_of(const CLI::App* app) {
  std::vector<std::string> all;
  for (; app != nullptr; app = app->get_parent())
    for (const CLI::Option* o : app->get_options())
      for (const std::string& name : o->get_lnames()) all.push_back("--" + name);
  return all;
}

std::vector<std::string> subcommands_of(const CLI::App& app) {
  std::vector<std::string> all;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) all.push_back(sub->get_name());
  return all;
}

std::string path_of(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : path_of(*app.get_parent()) + " " + app.get_name();
}

// The words that were left over, in the sentence for the first that is an option, else for the first.
int refuse_words(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App& at = innermost(app);
  const std::string command = path_of(at);
  for (const std::string& word : words)
    if (word.size() > 1 && word[0] == '-')
      return refuse(command, "the option " + word + " is not known" + did_you_mean(word, flags_of(&at)));
  const auto subs = subcommands_of(at);
  if (subs.empty()) return refuse(command, "'" + words.front() + "' is not expected");
  return refuse(command, "'" + words.front() + "' is not known" + did_you_mean(words.front(), subs));
}

// Whether the next word is its argument.
bool takes_word(const CLI::App& app, const std::string& flag) {
  if (flag.size() < 2 || flag[0] != '-' || flag.find('=') != std::string::npos) return false;
  const bool is_long = flag[1] == '-';
  if (!is_long && flag.size() != 2) return false;
  const std::string name = flag.substr(is_long ? 2 : 1);
  for (const CLI::Option* o : app.get_options())
    if ((is_long ? o->check_lname(name) : o->check_sname(name)) && o->get_items_expected_min() > 0) return true;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    if (takes_word(*sub, flag)) return true;
  return false;
}

// CLI11 takes flags of a subcommand behind its name alone. Here they may stand before it: names come first then.
std::vector<std::string> names_first(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> names, others;
  const CLI::App* at = &app;
  bool is_argument = false, ended = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    ended = ended || word == "--";
    const CLI::App* sub = nullptr;
    if (!ended && !is_argument)
      for (const CLI::App* one : at->get_subcommands([](const CLI::App*) { return true; }))
        if (one->get_name() == word) sub = one;
    is_argument = !is_argument && takes_word(app, word);
    (sub != nullptr ? names : others).push_back(word);
    if (sub != nullptr) at = sub;
  }
  names.insert(names.end(), others.begin(), others.end());
  return names;
}

// CLI11's sentence for --flag=value names neither the flag as it was written nor the cure.
std::string sentence_of(const CLI::ParseError& e) {
  const std::string what = e.what();
  const std::size_t at = what.find(" was given a disallowed flag override");
  return at == std::string::npos ? what : "--" + what.substr(0, at) + " takes no value; give it alone, or leave it out";
}

}  // namespace

int refuse(const std::string& command, const std::string& sentence) {
  const std::string tool = command.substr(0, command.find(' '));
  std::fprintf(stderr, "%s: %s; see %s --help\n", tool.c_str(), sentence.c_str(), command.c_str());
  return k_exit_usage;
}

std::optional<std::uint64_t> size_of_text(const std::string& text) {
  static const CLI::AsSizeValue to_bytes(false);
  if (!is_size(text)) return std::nullopt;
  std::string bytes = text;
  try {
    if (!to_bytes(bytes).empty()) return std::nullopt;
  } catch (const CLI::ValidationError&) {
    return std::nullopt;
  }
  return std::stoull(bytes);
}

std::uint64_t size_in(const std::string& name, const std::string& word, std::uint64_t low, std::uint64_t high) {
  const auto size = size_of_text(word);
  if (!size) throw wrong_word(name, "'" + word + "' is no size; give bytes as 65536, 64k, 16M or 1G");
  if (*size < low || *size > high)
    throw wrong_word(name, word + " is not in " + text_of_size(low) + " .. " + text_of_size(high));
  return *size;
}

option& option::type(const std::string& name) { return at_->type_name(name), *this; }
option& option::default_text(const std::string& text) { return at_->default_str(text), *this; }
option& option::may_stand_alone() { return at_->expected(0, 1), *this; }
option& option::once_each() { return at_->allow_extra_args(false), *this; }
option& option::excludes(const option& other) { return at_->excludes(other.at_), *this; }
option& option::hidden() { return at_->group(""), *this; }
bool option::given() const { return at_->count() != 0; }

std::string command::name() const { return at_->get_name(); }
bool command::given(const char* flag) const { return at_->count(flag) != 0; }
std::vector<command> command::given_subcommands() const {
  std::vector<command> all;
  for (CLI::App* sub : at_->get_subcommands()) all.emplace_back(sub);
  return all;
}

command command::subcommand(const std::string& name, const std::string& text) {
  return command(at_->add_subcommand(name, text));
}
void command::take_flags_of_parent() { at_->fallthrough(); }

option command::flag(const std::string& flags, bool& value, const std::string& text) {
  return option(at_->add_flag(flags, value, text)->disable_flag_override());
}
option command::word(const std::string& flags, std::string& value, const std::string& text) {
  return option(at_->add_option(flags, value, text));
}
option command::words(const std::string& flags, std::vector<std::string>& values, const std::string& text) {
  return option(at_->add_option(flags, values, text));
}
option command::call(const std::string& flags, std::function<void(const std::string&)> take, const std::string& text) {
  return option(at_->add_option_function<std::string>(flags, take, text));
}

option command::size(const std::string& flags, std::uint64_t& value, const std::string& text, std::uint64_t low,
                     std::uint64_t high) {
  const auto take = [&value, name = name_of(flags), low, high](const std::string& given) {
    value = size_in(name, given, low, high);
  };
  return call(flags, take, text).type("SIZE").default_text(text_of_size(value));
}

option command::number_of(const std::string& flags, const std::string& text, std::int64_t low, std::uint64_t high,
                          std::function<void(std::uint64_t)> take) {
  const auto read = [name = name_of(flags), low, high, take = std::move(take)](const std::string& given) {
    const auto n = number_in(given, low, high);
    if (!n)
      throw wrong_word(name,
                       "'" + given + "' is not a number in " + std::to_string(low) + " .. " + std::to_string(high));
    take(*n);
  };
  return call(flags, read, text).type("NUMBER");
}

command_line::command_line(const std::string& text, const std::string& name)
    : command(nullptr), app_(std::make_unique<CLI::App>(text, name)) {
  at_ = app_.get();
}
command_line::~command_line() = default;

void command_line::footer(const std::string& text) { app_->footer(text); }
void command_line::version(const std::string& text) { app_->set_version_flag("--version", text); }

std::optional<int> command_line::parse(int argc, char** argv) {
  CLI::App& app = *app_;
  take_unknown_words(app);
  try {
    std::vector<std::string> words = names_first(app, argc, argv);
    std::ranges::reverse(words);  // as CLI11 takes them
    app.parse(std::move(words));
  } catch (const CLI::Success& e) {
    return ended(app.get_name().c_str(), app.exit(e));
  } catch (const CLI::ParseError& e) {
    // A misspelt option is the likelier cause than an error that followed from it.
    const auto words = app.remaining(true);
    if (!words.empty() && dynamic_cast<const CLI::RequiredError*>(&e) != nullptr) return refuse_words(app, words);
    return refuse(path_of(innermost(app)), sentence_of(e));
  } catch (const wrong_word& e) {
    return refuse(path_of(innermost(app)), e.what());
  }
  const auto words = app.remaining(true);
  if (!words.empty()) return refuse_words(app, words);
  return std::nullopt;
}

std::optional<int> command_line::parse_before_program(std::vector<std::string> words, std::vector<std::string>& rest) {
  CLI::App& app = *app_;
  app.prefix_command();
  std::ranges::reverse(words);  // as CLI11 takes them
  try {
    app.parse(std::move(words));
  } catch (const CLI::Success& e) {
    return ended(app.get_name().c_str(), app.exit(e));
  } catch (const CLI::ParseError& e) {
    return refuse(app.get_name(), e.what());
  } catch (const wrong_word& e) {
    return refuse(app.get_name(), e.what());
  }
  rest = app.remaining();
  return std::nullopt;
}

}  // namespace xio::tools
