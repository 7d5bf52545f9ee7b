// SPDX-License-Identifier: MIT
// Worlds below launchers that speak PMI-2 over the socket PMI_FD, such as Slurm's srun --mpi=pmi2: rank and size are
// the launcher's, and its key-value space carries the unique id by which the ranks then connect over TCP.
//
// The wire, as MPICH's PMI-2 wiki page and Slurm's mpi/pmi2 plugin have it: one line each way that agrees on the
// version, then messages of 6 characters of decimal length and `cmd=NAME;key=value;...`, a request and its reply in
// turn.
#pragma once
#include <map>

#include "base/unique_fd.hpp"
#include "bootstrap/bootstrap.hpp"

namespace xio::bootstrap {

// A conversation with the launcher. Calls are made by one thread at a time; each throws XIO_ERR_TIMEOUT after
// timeout_ms without a reply, and XIO_ERR_PEER for a reply that is wrong, refuses, or does not come.
class pmi2_client {
 public:
  using fields = std::vector<std::pair<std::string, std::string>>;
  using reply = std::map<std::string, std::string>;

  // Agrees on the version, and asks for rank and size.
  pmi2_client(int fd, const std::string& job, const std::string& rank, std::uint64_t timeout_ms);
  pmi2_client(const pmi2_client&) = delete;
  pmi2_client& operator=(const pmi2_client&) = delete;
  // Ends the conversation, without which the launcher takes the end of this process for a failure.
  ~pmi2_client();

  int rank() const { return rank_; }
  int size() const { return size_; }

  void put(const std::string& key, const std::string& value);  // for everybody to see behind the next fence
  void fence();                                                // collective
  std::string get(const std::string& key);                     // empty if nobody has put it

 private:
  reply ask(const std::string& command, const fields& body);
  void agree();
  void send(const std::string& text, const deadline& until);
  std::string receive(std::size_t bytes, const deadline& until);
  void wait(short events, const deadline& until);

  const int fd_;
  const std::uint64_t timeout_ms_;
  std::string command_ = "init";  // under way, for sentences
  int rank_ = -1, size_ = 0;
  bool lost_ = false;
};

// Slurm offers PMI-2 to this process, which is one of its tasks.
bool offered_slurms_pmi2();

// The process's first call begins the conversation, which lasts until its end. Throws XIO_ERR_CONFIG where PMI_FD is
// not set or leads nowhere, and what connect_tcp throws.
std::unique_ptr<channel> connect_pmi2(const bootstrap_options& o);

}  // namespace xio::bootstrap
