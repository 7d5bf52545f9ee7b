// SPDX-License-Identifier: MIT
// A launcher that speaks PMI-2 and nothing else, on this machine: pmi2_server N FAULT PROGRAM [ARGUMENT...]. It is
// strict about what comes (its own knowledge of the wire, nothing of libxio's), and ends with the highest status of its
// children, or 9 where one of them broke the protocol. FAULT: none, or what it does wrong: version, refuse, length,
// other, close, silent, missing.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

struct child {
  pid_t pid;
  int fd;
  bool agreed = false, waits = false, finalized = false;
  std::string in{};
};

std::string fault;
std::map<std::string, std::string> fenced, put;
std::vector<child> children;
bool broken = false;

void complain(const std::string& what) {
  std::fprintf(stderr, "pmi2_server: %s\n", what.c_str());
  broken = true;
}

void write_all(int fd, const std::string& text) {
  if (send(fd, text.data(), text.size(), MSG_NOSIGNAL) < 0) std::perror("pmi2_server: send");
}

// The length on the left, as Slurm writes it.
void reply(child& c, const std::string& body) {
  char length[8];
  std::snprintf(length, sizeof length, "%-6zu", body.size());
  write_all(c.fd, (fault == "length" ? "sixsix" : std::string(length)) + body);
}

std::map<std::string, std::string> fields_of(const std::string& message) {
  std::map<std::string, std::string> out;
  for (std::size_t at = 0; at < message.size();) {
    const std::size_t equals = message.find('=', at), end = message.find(';', at);
    if (equals == std::string::npos || end == std::string::npos || equals > end) {
      complain("not key=value; pairs: " + message);
      return out;
    }
    out[message.substr(at, equals - at)] = message.substr(equals + 1, end - equals - 1);
    at = end + 1;
  }
  return out;
}

void fence(child& c) {
  if (fault == "silent") return;
  if (fault == "close") {
    close(c.fd);
    c.fd = -1;
    return;
  }
  c.waits = true;
  for (const child& other : children)
    if (!other.waits) return;
  fenced.insert(put.begin(), put.end());
  put.clear();
  for (child& other : children) {
    other.waits = false;
    reply(other, "cmd=kvs-fence-response;rc=0;");
  }
}

void handle(child& c, std::size_t rank, const std::string& message) {
  auto f = fields_of(message);
  const std::string command = f["cmd"];
  if (message.compare(0, 4, "cmd=") != 0) complain("the command does not come first: " + message);
  if (command == "fullinit") {
    if (f["pmijobid"] != "4711" || f["pmirank"] != std::to_string(rank) || f["threaded"].empty())
      complain("wrong fullinit: " + message);
    if (fault == "other") return reply(c, "cmd=job-getid-response;rc=0;jobid=1;");
    reply(c, "cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;rank=" + std::to_string(rank) +
                 ";size=" + std::to_string(children.size()) + ";appnum=-1;debugged=FALSE;pmiverbose=FALSE;");
  } else if (command == "kvs-put") {
    if (f["key"].size() > 64 || f["value"].size() > 1024) complain("too long: " + message);
    put[f["key"]] = f["value"];
    reply(c, fault == "refuse" ? "cmd=kvs-put-response;rc=14;errmsg=no room;" : "cmd=kvs-put-response;rc=0;");
  } else if (command == "kvs-fence") {
    fence(c);
  } else if (command == "kvs-get") {
    const auto at = fault == "missing" ? fenced.end() : fenced.find(f["key"]);
    reply(c, at == fenced.end() ? "cmd=kvs-get-response;rc=0;found=FALSE;"
                                : "cmd=kvs-get-response;rc=0;found=TRUE;value=" + at->second + ";");
  } else if (command == "finalize") {
    c.finalized = true;
    reply(c, "cmd=finalize-response;rc=0;");
  } else {
    complain("unknown command: " + message);
  }
}

void agree(child& c, const std::string& line) {
  c.agreed = true;
  if (line != "cmd=init pmi_version=2 pmi_subversion=0") complain("wrong first line: " + line);
  write_all(c.fd, fault == "version" ? "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n"
                                     : "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n");
}

// Handles all messages that have come to their end.
void take(child& c, std::size_t rank) {
  while (c.fd >= 0) {
    if (!c.agreed) {
      const std::size_t end = c.in.find('\n');
      if (end == std::string::npos) return;
      const std::string line = c.in.substr(0, end);
      c.in.erase(0, end + 1);
      agree(c, line);
      continue;
    }
    if (c.in.size() < 6) return;
    char* stop = nullptr;
    const std::string length = c.in.substr(0, 6);
    const unsigned long bytes = std::strtoul(length.c_str(), &stop, 10);
    if (std::strspn(stop, " ") != std::strlen(stop)) complain("no length: " + length);
    if (c.in.size() < 6 + bytes) return;
    const std::string message = c.in.substr(6, bytes);
    c.in.erase(0, 6 + bytes);
    handle(c, rank, message);
  }
}

void serve() {
  for (;;) {
    std::vector<pollfd> polled;
    for (const child& c : children)
      if (c.fd >= 0) polled.push_back({c.fd, POLLIN, 0});
    if (polled.empty()) return;
    poll(polled.data(), polled.size(), -1);
    for (std::size_t rank = 0; rank < children.size(); ++rank) {
      child& c = children[rank];
      char buffer[4096];
      const auto n = c.fd < 0 ? -1 : recv(c.fd, buffer, sizeof buffer, MSG_DONTWAIT);
      if (n > 0) {
        c.in.append(buffer, static_cast<std::size_t>(n));
        take(c, rank);
      } else if (n == 0) {
        close(c.fd);
        c.fd = -1;
      }
    }
  }
}

child start(std::size_t rank, std::size_t size, char** command) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) std::exit(9);
  const pid_t pid = fork();
  if (pid == 0) {
    close(pair[0]);
    setenv("PMI_FD", std::to_string(pair[1]).c_str(), 1);
    setenv("PMI_RANK", std::to_string(rank).c_str(), 1);
    setenv("PMI_SIZE", std::to_string(size).c_str(), 1);
    setenv("PMI_JOBID", "4711", 1);
    execvp(command[0], command);
    std::perror(command[0]);
    _exit(127);
  }
  close(pair[1]);
  return child{pid, pair[0]};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const auto size = static_cast<std::size_t>(std::atoi(argv[1]));
  fault = argv[2];
  for (std::size_t rank = 0; rank < size; ++rank) {
    children.push_back(start(rank, size, argv + 3));
    fcntl(children.back().fd, F_SETFD, FD_CLOEXEC);  // none of those that follow shall hold this end
  }
  serve();
  int status = 0;
  for (const child& c : children) {
    int one = 0;
    waitpid(c.pid, &one, 0);
    const int code = WIFEXITED(one) ? WEXITSTATUS(one) : 128 + WTERMSIG(one);
    if (code > status) status = code;
    if (fault == "none" && code == 0 && !c.finalized) complain("a rank did not finalize");
  }
  return broken ? 9 : status;
}
