// SPDX-License-Identifier: MIT

#include "bootstrap/pmi2.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <mutex>

#include "base/crypto.hpp"
#include "bootstrap/unique_id.hpp"

namespace xio::bootstrap {

namespace {

constexpr std::size_t k_length_digits = 6;
constexpr std::size_t k_line_max = 1024;
constexpr const char* k_cure = "look at the launcher's own output";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::optional<int> number(const std::string& text) {
  int value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return value;
}

// PMI_FD; none where that leads nowhere, as in a process that was not started by the launcher itself.
std::optional<int> socket_of_launcher() {
  int type = 0;
  socklen_t size = sizeof type;
  const auto fd = number(variable("PMI_FD"));
  return fd && getsockopt(*fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 ? fd : std::nullopt;
}

// key=value pairs, each with `end` behind it; two of these in a value stand for one.
pmi2_client::reply parse(const std::string& text, char end) {
  pmi2_client::reply out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t equals = text.find('=', at);
    if (equals == std::string::npos) break;
    std::string value;
    std::size_t i = equals + 1;
    for (; i < text.size(); ++i) {
      if (text[i] == end) {
        if (end != ';' || i + 1 >= text.size() || text[i + 1] != end) break;
        ++i;
      }
      value += text[i];
    }
    out[text.substr(at, equals - at)] = value;
    at = i + 1;
  }
  return out;
}

std::string field(const pmi2_client::reply& r, const char* key) {
  const auto at = r.find(key);
  return at != r.end() ? at->second : "";
}

std::string hex_of(const xio_unique_id_t& id) {
  std::string text;
  for (const unsigned char byte : id.bytes) text += fmt::format("{:02x}", byte);
  return text;
}

bool read_hex(const std::string& text, xio_unique_id_t& id) {
  if (text.size() != 2 * sizeof id.bytes) return false;
  for (std::size_t i = 0; i < sizeof id.bytes; ++i) {
    const char* at = text.data() + 2 * i;
    const auto [end, ec] = std::from_chars(at, at + 2, id.bytes[i], 16);
    if (ec != std::errc() || end != at + 2) return false;
  }
  return true;
}

}  // namespace

pmi2_client::pmi2_client(int fd, const std::string& job, const std::string& rank, std::uint64_t timeout_ms)
    : fd_(fd), timeout_ms_(timeout_ms) {
  agree();
  const reply r = ask("fullinit", {{"pmijobid", job}, {"pmirank", rank}, {"threaded", "FALSE"}});
  rank_ = number(field(r, "rank")).value_or(-1);
  size_ = number(field(r, "size")).value_or(0);
  if (rank_ < 0 || rank_ >= size_)
    fail(XIO_ERR_PEER, "the launcher at PMI_FD={} says rank '{}' of '{}', which cannot be; {}", fd_, field(r, "rank"),
         field(r, "size"), k_cure);
}

pmi2_client::~pmi2_client() {
  if (lost_) return;
  try {
    ask("finalize", {});
  } catch (const error&) {  // The launcher has ended before, and this process is about to.
  }
}

// One line in the form of PMI-1, before messages have lengths.
void pmi2_client::agree() {
  const auto until = deadline::in(timeout_ms_);
  send("cmd=init pmi_version=2 pmi_subversion=0\n", until);
  std::string line;
  while (line.empty() || line.back() != '\n') {
    line += receive(1, until);
    if (line.size() > k_line_max) break;
  }
  if (!line.empty() && line.back() == '\n') line.pop_back();
  const reply r = parse(line, ' ');
  if (field(r, "cmd") == "response_to_init" && field(r, "rc") == "0" && field(r, "pmi_version") == "2") return;
  lost_ = true;
  fail(XIO_ERR_PEER, "the launcher at PMI_FD={} does not speak PMI-2, it says '{}'; start with srun --mpi=pmi2", fd_,
       line.substr(0, 100));
}

pmi2_client::reply pmi2_client::ask(const std::string& command, const fields& body) {
  if (lost_) fail(XIO_ERR_PEER, "the launcher at PMI_FD={} was lost before; {}", fd_, k_cure);
  command_ = command;
  lost_ = true;  // unless a whole reply comes
  const auto until = deadline::in(timeout_ms_);
  std::string text = "cmd=" + command + ";";
  for (const auto& [key, value] : body) text += key + "=" + value + ";";
  send(fmt::format("{:6}{}", text.size(), text), until);
  std::string length = receive(k_length_digits, until);
  length.erase(0, length.find_first_not_of(' '));
  length.erase(length.find_last_not_of(' ') + 1);
  const auto bytes = number(length);
  if (!bytes || *bytes < 0)
    fail(XIO_ERR_PEER, "the launcher's reply to {} at PMI_FD={} begins with '{}', which is no length of PMI-2; {}",
         command, fd_, length, k_cure);
  const std::string whole = receive(static_cast<std::size_t>(*bytes), until);
  const reply r = parse(whole, ';');
  if (field(r, "cmd") != command + "-response")
    fail(XIO_ERR_PEER, "the launcher at PMI_FD={} says '{}' where its reply to {} is due; {}", fd_,
         whole.substr(0, 100), command, k_cure);
  lost_ = false;
  if (field(r, "rc") != "0")
    fail(XIO_ERR_PEER, "the launcher at PMI_FD={} refused {}: rc {} {}; {}", fd_, command, field(r, "rc"),
         field(r, "errmsg"), k_cure);
  return r;
}

void pmi2_client::wait(short events, const deadline& until) {
  for (;;) {
    pollfd p{fd_, events, 0};
    if (poll(&p, 1, until.poll_ms()) > 0) return;
    if (until.passed())
      fail(XIO_ERR_TIMEOUT,
           "the launcher at PMI_FD={} did not reply to {} within {} ms; {}, look whether all ranks start, or raise "
           "XIO_TIMEOUT_MS",
           fd_, command_, timeout_ms_, k_cure);
  }
}

void pmi2_client::send(const std::string& text, const deadline& until) {
  for (std::size_t sent = 0; sent < text.size();) {
    const auto n = ::send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
    } else if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
      lost_ = true;
      fail(XIO_ERR_PEER, "the launcher at PMI_FD={} does not take {}: {}; {}", fd_, command_, std::strerror(errno),
           k_cure);
    } else {
      wait(POLLOUT, until);
    }
  }
}

std::string pmi2_client::receive(std::size_t bytes, const deadline& until) {
  std::string text(bytes, '\0');
  for (std::size_t have = 0; have < bytes;) {
    const auto n = ::recv(fd_, text.data() + have, bytes - have, MSG_DONTWAIT);
    if (n > 0) {
      have += static_cast<std::size_t>(n);
    } else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
      lost_ = true;
      fail(XIO_ERR_PEER, "the launcher at PMI_FD={} went away instead of replying to {}; {}", fd_, command_, k_cure);
    } else {
      wait(POLLIN, until);
    }
  }
  return text;
}

void pmi2_client::put(const std::string& key, const std::string& value) {
  ask("kvs-put", {{"key", key}, {"value", value}});
}

void pmi2_client::fence() { ask("kvs-fence", {}); }

std::string pmi2_client::get(const std::string& key) {
  // The job is this one, and no rank is known to have put it.
  const reply r = ask("kvs-get", {{"jobid", variable("PMI_JOBID")}, {"srcid", "-1"}, {"key", key}});
  return field(r, "found") == "TRUE" ? field(r, "value") : "";
}

bool offered_slurms_pmi2() {
  return crypto::k_proves && socket_of_launcher() && number(variable("PMI_RANK")) &&
         !variable("SLURM_STEP_ID").empty() && variable("PMIX_RANK").empty();
}

namespace {

// The launcher has one conversation for a process, and may have several worlds made by it.
struct process_session {
  std::mutex lock;
  std::unique_ptr<pmi2_client> client;
  int worlds = 0;
};

process_session& session() {
  static process_session one;
  return one;
}

int need_socket_of_launcher() {
  if (variable("PMI_FD").empty())
    fail(XIO_ERR_CONFIG,
         "PMI_FD is not set, so no launcher offers PMI-2 to this process; start with srun --mpi=pmi2, or set "
         "XIO_BOOTSTRAP to another way");
  const auto fd = socket_of_launcher();
  if (!fd)
    fail(XIO_ERR_CONFIG, "PMI_FD='{}' is no socket of this process; start it by the launcher itself",
         variable("PMI_FD"));
  return *fd;
}

constexpr const char* k_no_id = "none";

// Rank 0 makes the id. Where it cannot, the others learn of it at once.
xio_unique_id_t exchange_id(pmi2_client& launcher, int world, const network_options& o) {
  const std::string key = fmt::format("xio-world-{}", world);
  xio_unique_id_t id{};
  std::optional<error> failed;
  if (launcher.rank() == 0) {
    try {
      id = make_unique_id(o);
    } catch (const error& e) {
      failed = e;
    }
    launcher.put(key, failed ? k_no_id : hex_of(id));
  }
  launcher.fence();
  if (failed) throw error(*failed);
  if (launcher.rank() == 0) return id;
  const std::string text = launcher.get(key);
  if (text == k_no_id) fail(XIO_ERR_PEER, "rank 0 could not listen for the others, and says why itself; cure that");
  if (!read_hex(text, id))
    fail(XIO_ERR_PEER, "the launcher's key-value space holds '{}' under {} instead of a unique id; {}",
         text.substr(0, 40), key, k_cure);
  return id;
}

}  // namespace

std::unique_ptr<channel> connect_pmi2(const bootstrap_options& o) {
  process_session& s = session();
  place_by_id mine;
  {
    const std::lock_guard hold(s.lock);
    if (s.client == nullptr)
      s.client = std::make_unique<pmi2_client>(need_socket_of_launcher(), variable("PMI_JOBID"), variable("PMI_RANK"),
                                               o.timeout_ms);
    mine = {exchange_id(*s.client, s.worlds++, o), s.client->rank(), s.client->size()};
  }
  return connect_unique_id(o, mine);
}

}  // namespace xio::bootstrap
