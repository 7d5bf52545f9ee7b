// SPDX-License-Identifier: MIT
#include "tools/xio-verify/redaction.hpp"

#include <arpa/inet.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <string_view>

namespace xio::verify {
namespace {

using json = nlohmann::ordered_json;

// Names that say nothing of a machine, and would take words out of the report that it needs.
constexpr std::string_view k_common[] = {"localhost", "localdomain", "root", "host",   "hip",    "cuda",  "gpu",
                                         "xio",       "user",        "amd",  "nvidia", "linux",  "none",  "node",
                                         "debian",    "ubuntu",      "home", "local",  "passed", "failed"};

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// As whole words, in any case.
std::string replace_name(const std::string& from, const private_name& p) {
  const std::string text = lower(from), name = lower(p.name);
  std::string out;
  for (std::size_t at = 0;;) {
    const std::size_t found = text.find(name, at);
    if (found == std::string::npos) return out + from.substr(at);
    const std::size_t end = found + name.size();
    const bool whole = (found == 0 || !is_word(from[found - 1])) && (end == from.size() || !is_word(from[end]));
    out += from.substr(at, found - at) + (whole ? p.stand_in : from.substr(found, name.size()));
    at = end;
  }
}

// --- Addresses, by their form ------------------------------------------------------------------------

// The letters that addresses are made of.
std::size_t span_of(const std::string& text, std::size_t from, std::string_view also) {
  std::size_t end = from;
  while (end < text.size() && (is_hex(text[end]) || also.find(text[end]) != std::string_view::npos)) ++end;
  return end - from;
}

// Groups of hex digits between separators, as "3b:00.0" is {2, 2}; {} if one is empty.
std::vector<std::size_t> groups_of(std::string_view word, char separator) {
  std::vector<std::size_t> groups{0};
  for (const char c : word) {
    if (c == separator) {
      groups.push_back(0);
    } else if (is_hex(c)) {
      ++groups.back();
    } else {
      return {};
    }
  }
  return groups;
}

bool all_of_size(const std::vector<std::size_t>& groups, std::size_t count, std::size_t digits) {
  return groups.size() == count && std::ranges::all_of(groups, [&](std::size_t n) { return n == digits; });
}

// MAC (6 groups), InfiniBand hardware address (20), GUID (8), by ':' or '-'; PCI's serial numbers are written by '-'.
bool is_hardware_address(std::string_view word) {
  for (const char separator : {':', '-'}) {
    const auto groups = groups_of(word, separator);
    for (const std::size_t count : {std::size_t{6}, std::size_t{8}, std::size_t{20}})
      if (all_of_size(groups, count, 2)) return true;
    // A GUID as sysfs writes it: 0002:c903:0012:3456. A UUID: 8-4-4-4-12.
    if (all_of_size(groups, 4, 4)) return true;
    if (groups == std::vector<std::size_t>{8, 4, 4, 4, 12}) return true;
  }
  // Cisco's way: 0011.2233.4455
  return all_of_size(groups_of(word, '.'), 3, 4);
}

bool is_ipv6(const std::string& word) {
  std::array<unsigned char, 16> bytes{};
  return std::ranges::count(word, ':') >= 2 && std::ranges::any_of(word, is_hex) &&
         inet_pton(AF_INET6, word.c_str(), bytes.data()) == 1;
}

// a.b.c.d. A version of four numbers would be one, too; none that the report has is written so.
bool is_ipv4(const std::string& word) {
  in_addr a{};
  return inet_pton(AF_INET, word.c_str(), &a) == 1;
}

// Returns the stand-in for a word made of hex digits, colons, dots and hyphens; "" if it may stay.
std::string stand_in_for(const std::string& word) {
  if (is_hardware_address(word)) return "[hardware address]";
  if (is_ipv4(word) || is_ipv6(word)) return "[IP address]";
  return "";
}

// The same for what begins the word, where a port, a prefix length or a full stop follows.
std::string stand_in_for_part(std::string word, std::size_t* length) {
  for (std::size_t end = word.size(); end >= 2; --end) {
    *length = end;
    if (const std::string is = stand_in_for(word.substr(0, end)); !is.empty()) {
      const char next = end < word.size() ? word[end] : ' ';
      if (!is_hex(next) && !(next == '.' && end + 1 < word.size() && is_digit(word[end + 1]))) return is;
    }
  }
  return "";
}

// GUIDs and serial numbers without separators: 12 hex digits or 16 with a digit among them, also behind 0x. Hashes of
// commits are known by their other lengths, and "build" keeps its own of 12 apart.
bool is_bare_identifier(std::string_view digits, bool after_0x) {
  const bool mixed = std::ranges::any_of(digits, is_digit);
  const bool hex = std::ranges::all_of(digits, is_hex);
  return hex && mixed && (digits.size() == 16 || digits.size() == 32 || (after_0x && digits.size() > 10));
}

// Names that udev and rdma-core make of addresses: enx001122334455, rocex0011223344556677, ibx...
bool is_address_name(std::string_view word) {
  for (const std::string_view prefix : {"enx", "wlx", "ibx", "rocex", "iwx", "opax", "rxex", "ibsx"}) {
    if (!word.starts_with(prefix)) continue;
    const std::string_view rest = word.substr(prefix.size());
    if (rest.size() >= 12 && std::ranges::all_of(rest, is_hex)) return true;
  }
  return false;
}

std::string without_addresses(const std::string& from) {
  std::string out;
  for (std::size_t at = 0; at < from.size();) {
    if (at != 0 && is_word(from[at - 1])) {
      out += from[at++];
      continue;
    }
    std::size_t length = span_of(from, at, ":.-");
    if (length >= 2) {
      const std::string is = stand_in_for_part(from.substr(at, length), &length);
      if (!is.empty() && (at + length == from.size() || !is_word(from[at + length]))) {
        out += is;
        at += length;
        continue;
      }
    }
    std::size_t word = 0;
    while (at + word < from.size() && is_word(from[at + word])) ++word;
    const std::string_view whole = std::string_view(from).substr(at, word);
    const bool hex_prefix = whole.starts_with("0x") || whole.starts_with("0X");
    if (word != 0 && (is_address_name(whole) || is_bare_identifier(whole.substr(hex_prefix ? 2 : 0), hex_prefix))) {
      out += "[identifier]";
      at += word;
      continue;
    }
    out += from[at++];
  }
  return out;
}

// Replaces the text behind a word such as "serial" up to the end of its value.
std::string without_serials(const std::string& from) {
  static constexpr std::string_view k_labels[] = {"serial number", "serial_number", "serial",    "uuid",
                                                  "unique_id",     "asset_tag",     "node_guid", "sys_image_guid"};
  const std::string text = lower(from);
  for (const std::string_view label : k_labels) {
    const std::size_t found = text.find(label);
    if (found == std::string::npos) continue;
    std::size_t value = found + label.size();
    while (value < from.size() && (from[value] == ' ' || from[value] == ':' || from[value] == '=')) ++value;
    std::size_t end = value;
    while (end < from.size() && std::string_view(" ,;\n\"'").find(from[end]) == std::string_view::npos) ++end;
    const bool has_digit = std::any_of(from.begin() + static_cast<std::ptrdiff_t>(value),
                                       from.begin() + static_cast<std::ptrdiff_t>(end), is_digit);
    if (value == found + label.size() || end - value < 4 || !has_digit) continue;
    return from.substr(0, value) + "[serial]" + without_serials(from.substr(end));
  }
  return from;
}

// /home/NAME and /Users/NAME, for any name.
std::string without_homes(const std::string& from) {
  std::string out = from;
  for (const std::string folder : {"/home/", "/Users/"}) {
    for (std::size_t at = 0; (at = out.find(folder, at)) != std::string::npos; at += folder.size()) {
      std::size_t end = at + folder.size();
      while (end < out.size() && std::string_view("/ :\"'\n,;").find(out[end]) == std::string_view::npos) ++end;
      if (end != at + folder.size()) out.replace(at + folder.size(), end - at - folder.size(), "[user]");
    }
  }
  return out;
}

void add(std::vector<private_name>& to, const char* name, const char* stand_in) {
  if (name != nullptr && *name != '\0') to.push_back({name, stand_in});
}

}  // namespace

std::vector<private_name> names_here() {
  std::vector<private_name> all;
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) == 0) add(all, host, "[host]");
  const std::string full = host;
  add(all, full.substr(0, full.find('.')).c_str(), "[host]");
  char domain[256] = "";
  if (getdomainname(domain, sizeof domain - 1) == 0 && std::string(domain) != "(none)") add(all, domain, "[domain]");
  for (const char* variable : {"HOSTNAME", "HOST"}) add(all, std::getenv(variable), "[host]");
  for (const char* variable : {"USER", "LOGNAME", "SUDO_USER", "USERNAME"}) add(all, std::getenv(variable), "[user]");
  add(all, std::getenv("HOME"), "[home]");
  for (const uid_t id : {getuid(), geteuid()}) {
    const passwd* p = getpwuid(id);
    if (p == nullptr) continue;
    add(all, p->pw_name, "[user]");
    add(all, p->pw_dir, "[home]");
    const std::string full_name = p->pw_gecos == nullptr ? "" : p->pw_gecos;
    add(all, full_name.substr(0, full_name.find(',')).c_str(), "[user]");
  }
  return all;
}

redactor::redactor(std::vector<private_name> names) {
  for (private_name& p : names) {
    const bool common = std::ranges::find(k_common, lower(p.name)) != std::end(k_common);
    if (p.name.size() >= 2 && p.name != "/" && !common) names_.push_back(std::move(p));
  }
  std::ranges::stable_sort(names_, [](const auto& a, const auto& b) { return a.name.size() > b.name.size(); });
}

std::string redactor::text(const std::string& from) const {
  std::string out = from;
  for (const private_name& p : names_) out = replace_name(out, p);
  return without_addresses(without_serials(without_homes(out)));
}

json redactor::all(const json& from) const {
  if (from.is_string()) return text(from.get_ref<const std::string&>());
  if (from.is_array()) {
    json out = json::array();
    for (const json& one : from) out.push_back(all(one));
    return out;
  }
  if (from.is_object()) {
    json out = json::object();
    for (const auto& [key, value] : from.items()) {
      std::string name = text(key);
      // Keys that have become the same stay apart.
      for (int n = 2; out.contains(name); ++n) name = text(key) + " " + std::to_string(n);
      out[name] = all(value);
    }
    return out;
  }
  return from;
}

}  // namespace xio::verify
