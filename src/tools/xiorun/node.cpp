// SPDX-License-Identifier: MIT
#include "tools/xiorun/node.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "base/port_range.hpp"
#include "tools/xiorun/child.hpp"
#include "tools/xiorun/loopback.hpp"
#include "tools/xiorun/program.hpp"

namespace xio::run {
namespace {

constexpr std::string_view k_ready = "\1xiorun-node 3 ";  // the number is that of this protocol
constexpr std::string_view k_ended = "\1xiorun-node ended ", k_lost = "\1xiorun-node lost ";
constexpr std::size_t k_order_max = std::size_t{16} << 20;
constexpr int k_list_max = 100000, k_pes_most = 1 << 20;
constexpr int k_agent_lost = 255;  // of ssh, whose own errors have this status

void put(std::string& order, std::string_view part) {
  order += std::to_string(part.size()) + ':';
  order += part;
  order += ',';
}

[[noreturn]] void refuse_order() {
  throw std::runtime_error("standard input holds no order; --node is for xiorun's own use");
}

// Reads no byte beyond the order.
std::string read_part() {
  std::string length;
  char c = 0;
  const auto next = [&] {
    ssize_t n = 0;
    while ((n = read(STDIN_FILENO, &c, 1)) < 0 && errno == EINTR) continue;
    if (n != 1) throw std::runtime_error("the xiorun that started this one has ended");
  };
  for (next(); c != ':'; next()) {
    if (length.size() == 8) refuse_order();
    length += c;
  }
  std::size_t bytes = 0;
  const auto [end, ec] = std::from_chars(length.data(), length.data() + length.size(), bytes);
  if (ec != std::errc() || end != length.data() + length.size() || bytes > k_order_max) refuse_order();
  std::string part;
  for (std::size_t i = 0; i < bytes; ++i) {
    next();
    part += c;
  }
  next();
  return part;
}

int read_number(int least, int most) {
  const std::string text = read_part();
  int n = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (ec != std::errc() || end != text.data() + text.size() || n < least || n > most) refuse_order();
  return n;
}

std::vector<std::string> read_list() {
  std::vector<std::string> all(static_cast<std::size_t>(read_number(0, k_list_max)));
  for (std::string& one : all) one = read_part();
  return all;
}

void put_list(std::string& order, const std::vector<std::string>& list) {
  put(order, std::to_string(list.size()));
  for (const std::string& one : list) put(order, one);
}

job_settings read_order() {
  job_settings s;
  s.root = read_part();
  s.key = read_part();
  s.world = read_number(1, k_pes_most);
  s.first = read_number(0, s.world - 1);
  s.pes = read_number(1, s.world - s.first);
  s.tag_output = read_part() == "1";
  s.grace_s = std::strtod(read_part().c_str(), nullptr);
  s.survive = read_part() == "1";
  s.lease_s = std::strtod(read_part().c_str(), nullptr);
  const std::string folder = read_part();
  s.command = read_list();
  if (s.command.empty()) refuse_order();
  s.environment = read_list();
  s.lifeline = STDIN_FILENO;
  if (chdir(folder.c_str()) != 0)
    throw std::runtime_error("the folder '" + folder + "' of this run cannot be entered here: " + std::strerror(errno));
  // Looked up with the PATH that the PEs get.
  for (const std::string& one : s.environment)
    if (one.starts_with("PATH=")) setenv("PATH", one.c_str() + std::strlen("PATH="), 1);
  s.program = find_program(s.command.front());
  return s;
}

std::optional<int> number_behind(std::string_view line, std::string_view mark, int least, int most) {
  const auto at = line.find(mark);
  if (at == std::string_view::npos) return {};
  const auto text = line.substr(at + mark.size());
  int n = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), n);
  const bool whole = ec == std::errc() && end == text.data() + text.size();
  return whole && n >= least && n <= most ? std::optional(n) : std::nullopt;
}

std::string host_name() {
  char name[256] = "?";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

std::string lost_line(int pes) { return std::string(k_lost) + std::to_string(pes) + '\n'; }

pid_t host_link::start(const std::vector<std::string>& words, int* out, int* err) {
  int pipes[3][2];
  unique_fd ours[3], agents[3];
  for (int i = 0; i < 3; ++i) {
    if (pipe2(pipes[i], O_CLOEXEC) != 0) return -1;
    ours[i].reset(pipes[i][i == 0 ? 1 : 0]);
    agents[i].reset(pipes[i][i == 0 ? 0 : 1]);
  }
  const pid_t agent = start_agent(words, {agents[0].get(), agents[1].get(), agents[2].get()});
  if (agent <= 0) return agent;
  fd = std::move(ours[0]);
  fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  to = std::make_unique<sink>(fd.get());
  *out = ours[1].release();
  *err = ours[2].release();
  return agent;
}

bool host_link::take(std::string_view line, std::string_view* before) {
  const auto has = [&](std::string_view mark, int least, int most, auto& number) {
    const auto found = number_behind(line, mark, least, most);
    if (found) number = *found, *before = line.substr(0, line.find(mark));
    return found.has_value();
  };
  // Behind what a login has printed without an end of line.
  if (!port) return has(k_ready, 1, 65535, port);
  return has(k_ended, 0, 255, status) || has(k_lost, 1, k_pes_most, lost);
}

std::string host_link::why_ended(const host& h, const job_settings& s, int agents_status) const {
  const std::string what = "the agent '" + s.agent + "' ended with status " + std::to_string(agents_status);
  if (!port)
    return "host " + h.name + ": " + what +
           " before xiorun ran there; check that it gets there without a question and finds " + s.remote_xiorun +
           " there";
  if (!status && s.survive) return "host " + h.name + " is lost: " + what + " before its PEs did";
  if (!status && agents_status == 0)
    return "host " + h.name + ": " + what + " before its PEs did; check that it stays as long as what it starts";
  return agents_status == k_agent_lost ? "host " + h.name + ": a PE there or " + what : "";
}

std::string make_order(const job_settings& s, std::size_t at, int first, const std::string& root) {
  std::string order;
  put(order, root);
  put(order, s.key);
  put(order, std::to_string(s.world));
  put(order, std::to_string(first));
  put(order, std::to_string(s.hosts[at].pes));
  put(order, s.tag_output ? "1" : "0");
  put(order, std::to_string(s.grace_s));
  put(order, s.survive ? "1" : "0");
  put(order, std::to_string(s.lease_s));
  put(order, s.folder);
  put_list(order, s.command);
  put_list(order, s.environment);
  return order;
}

int run_node(char* name, const char* ports) {
  if (ports != nullptr) setenv("XIO_TCP_PORTS", ports, 1);
  const auto kept = reserve_anywhere();
  if (!kept.reservation) {
    std::fprintf(stderr, "xiorun: host %s: %s\n", host_name().c_str(), kept.why.c_str());
    return 1;
  }
  std::printf("%s%d\n", k_ready.data(), kept.port);
  std::fflush(stdout);
  job_settings s;
  try {
    s = read_order();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "xiorun: host %s: %s\n", host_name().c_str(), e.what());
    return 1;
  }
  const int status = run_job(s, name);
  // An agent may keep the status for itself.
  signal(SIGPIPE, SIG_IGN);
  std::printf("%s%d\n", k_ended.data(), status);
  std::fflush(stdout);
  return status;
}

std::vector<std::string> agent_words(const std::string& agent, const host& h, const std::string& xiorun) {
  std::vector<std::string> words = agent_on(agent, h);
  words.push_back(xiorun);
  words.emplace_back("--node");
  // The node chooses a port before it has read its orders.
  const char* const ports = std::getenv("XIO_TCP_PORTS");
  if (ports != nullptr && *ports != '\0' && port_range::read(ports)) words.emplace_back(ports);
  return words;
}

}  // namespace xio::run
