// SPDX-License-Identifier: MIT
#include "tools/xiorun/hosts.hpp"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

namespace xio::run {
namespace {

constexpr int k_pes_of_host_max = 1024;

[[noreturn]] void refuse(const std::string& sentence) { throw std::invalid_argument(sentence); }

int number_in(const std::string& text, const std::string& entry) {
  int n = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (ec != std::errc() || end != text.data() + text.size() || n < 1 || n > k_pes_of_host_max)
    refuse("the host '" + entry + "' has no number of PEs in 1 .. " + std::to_string(k_pes_of_host_max) +
           " behind its colon; write it as b:4, and an IPv6 address in brackets, as [fd00::2]:4");
  return n;
}

host parse_host(const std::string& entry) {
  host h;
  const auto bracket = entry.find(']');
  const auto colon = entry.find(':', bracket == std::string::npos ? 0 : bracket);
  h.name = entry.substr(0, colon);
  if (colon != std::string::npos) h.pes = number_in(entry.substr(colon + 1), entry);
  if (h.name.empty()) refuse("the list of hosts has an entry without a name; write it as a:4,b:4");
  // An agent would take it for an option of its own.
  if (h.name.front() == '-') refuse("the host '" + entry + "' begins with a dash; give a host's name or address");
  return h;
}

}  // namespace

std::vector<host> parse_hosts(const std::string& list) {
  std::vector<host> hosts;
  std::stringstream in(list + ",");
  for (std::string entry; std::getline(in, entry, ',');) hosts.push_back(parse_host(entry));
  return hosts;
}

std::vector<host> read_hostfile(const std::string& path) {
  std::ifstream file(path);
  if (!file) refuse("the hostfile '" + path + "' cannot be read: " + std::strerror(errno));
  std::vector<host> hosts;
  for (std::string line; std::getline(file, line);) {
    std::stringstream words(line.substr(0, line.find('#')));
    std::string name, more, too_much;
    if (!(words >> name)) continue;
    host h = parse_host(name);
    if (words >> more) {
      if (!more.starts_with("slots=") || words >> too_much)
        refuse("the hostfile '" + path + "' has the line '" + line + "'; write each as a:4 or as a slots=4");
      h.pes = number_in(more.substr(std::strlen("slots=")), line);
    }
    hosts.push_back(h);
  }
  if (hosts.empty()) refuse("the hostfile '" + path + "' names no host");
  return hosts;
}

std::vector<host> place(std::vector<host> hosts, int wanted) {
  std::set<std::string> names;
  int places = 0;
  for (const host& h : hosts) {
    if (!names.insert(address_of(h)).second)
      refuse("the host " + address_of(h) + " is in the list twice; name it once, with all its PEs, as " +
             address_of(h) + ":4");
    places += h.pes;
  }
  if (wanted > places)
    refuse("-n " + std::to_string(wanted) + " is more than the hosts' " + std::to_string(places) +
           " places; add hosts, or give more PEs to one, as a:4");
  int left = wanted > 0 ? wanted : places;
  std::vector<host> taken;
  for (host& h : hosts) {
    if (left == 0) break;
    h.pes = std::min(h.pes, left);
    left -= h.pes;
    taken.push_back(std::move(h));
  }
  return taken;
}

std::string address_of(const host& h) { return h.name.substr(h.name.find('@') + 1); }

std::vector<std::string> agent_on(const std::string& agent, const host& h) {
  std::vector<std::string> words;
  if (agent == "ssh") {
    // A question for a password or an unknown host would wait for a user who may not be there.
    words = {"ssh", "-x", "-T", "-o", "BatchMode=yes", h.name};
  } else if (agent == "srun") {
    words = {"srun", "--nodes=1", "--ntasks=1", "--overlap", "--unbuffered", "--mpi=none", "-w", h.name};
  } else {
    std::stringstream in(agent);
    for (std::string word; in >> word;) words.push_back(word);
    words.push_back(h.name);
  }
  return words;
}

}  // namespace xio::run
