// SPDX-License-Identifier: MIT
#include "config.h"
#ifdef HAVE_SODIUM
#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.hpp"
#include "bootstrap/key.hpp"
#include "bootstrap/socket.hpp"

namespace xio::bootstrap {

namespace {

constexpr off_t k_file_max = 4096;

void check_private(const std::string& path, const struct stat& st) {
  if (!S_ISREG(st.st_mode))
    fail(XIO_ERR_AUTH, "XIO_TCP_KEY_FILE='{}' is not a regular file; put the key into a file of mode 0600", path);
  if (st.st_uid != geteuid())
    fail(XIO_ERR_AUTH, "XIO_TCP_KEY_FILE='{}' belongs to user {}, not to you (user {}); use a key file of your own",
         path, st.st_uid, geteuid());
  if ((st.st_mode & 0177) != 0)
    fail(XIO_ERR_AUTH,
         "XIO_TCP_KEY_FILE='{}' has mode {:04o}, so others may know the key; make a new key and chmod 0600", path,
         st.st_mode & 07777);
  if (st.st_size > k_file_max)
    fail(XIO_ERR_CONFIG, "XIO_TCP_KEY_FILE='{}' has {} bytes, more than a key of {} can have; is it the right file?",
         path, st.st_size, k_file_max);
}

std::string read_key_file(const std::string& path) {
  // O_NONBLOCK: opening a FIFO would wait for its writer.
  unique_fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat st {};
  if (!fd || fstat(fd.get(), &st) != 0)
    fail(XIO_ERR_CONFIG, "XIO_TCP_KEY_FILE='{}' cannot be read: {}; give a readable file of mode 0600 with the key",
         path, errno_text(errno));
  check_private(path, st);
  std::string text;
  char buffer[k_file_max];
  ssize_t n = 0;
  while (text.size() < k_file_max && ((n = read(fd.get(), buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR)))
    if (n > 0) text.append(buffer, static_cast<std::size_t>(n));
  sodium_memzero(buffer, sizeof buffer);
  if (n < 0) fail(XIO_ERR_IO, "XIO_TCP_KEY_FILE='{}' cannot be read: {}", path, errno_text(errno));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

}  // namespace

secret::~secret() { sodium_memzero(bytes_.data(), bytes_.size()); }

secret load_key(const options& o) {
  if (!o.tcp_key.empty() && !o.tcp_key_file.empty())
    fail(XIO_ERR_CONFIG, "XIO_TCP_KEY and XIO_TCP_KEY_FILE are both set; unset one of them");
  if (o.tcp_key.empty() && o.tcp_key_file.empty())
    fail(XIO_ERR_CONFIG,
         "the TCP bootstrap has no key; give every rank the same XIO_TCP_KEY, or XIO_TCP_KEY_FILE with a file of mode "
         "0600, or start the ranks with xiorun");
  std::string text = o.tcp_key_file.empty() ? o.tcp_key : read_key_file(o.tcp_key_file);
  if (text.size() < k_key_text_min)
    fail(XIO_ERR_CONFIG, "the key in {} has {} characters, fewer than {}; make one with: openssl rand -hex 32",
         o.tcp_key_file.empty() ? "XIO_TCP_KEY" : "XIO_TCP_KEY_FILE='" + o.tcp_key_file + "'", text.size(),
         k_key_text_min);
  secret key;
  static constexpr unsigned char k_purpose[] = "xio tcp bootstrap 1";
  crypto_generichash(key.data(), secret::k_bytes, reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                     k_purpose, sizeof k_purpose - 1);
  sodium_memzero(text.data(), text.size());
  return key;
}

}  // namespace xio::bootstrap
#endif  // HAVE_SODIUM
