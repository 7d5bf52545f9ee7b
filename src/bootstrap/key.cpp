// SPDX-License-Identifier: MIT
#include "bootstrap/key.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "base/error.hpp"
#include "base/mac.hpp"
#include "bootstrap/socket.hpp"

namespace xio::bootstrap {

secret::~secret() { explicit_bzero(bytes_.data(), bytes_.size()); }

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

secret_text read_key_file(const std::string& path) {
  // O_NONBLOCK: opening a FIFO would wait for its writer.
  unique_fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat st {};
  if (!fd || fstat(fd.get(), &st) != 0)
    fail(XIO_ERR_CONFIG, "XIO_TCP_KEY_FILE='{}' cannot be read: {}; give a readable file of mode 0600 with the key",
         path, errno_text(errno));
  check_private(path, st);
  char buffer[k_file_max];
  std::size_t size = 0;
  ssize_t n = 0;
  while (size < sizeof buffer &&
         ((n = read(fd.get(), buffer + size, sizeof buffer - size)) > 0 || (n < 0 && errno == EINTR)))
    if (n > 0) size += static_cast<std::size_t>(n);
  const int err = errno;
  while (size != 0 && (buffer[size - 1] == '\n' || buffer[size - 1] == '\r')) --size;
  secret_text text(std::string_view(buffer, size));
  explicit_bzero(buffer, sizeof buffer);
  if (n < 0) fail(XIO_ERR_IO, "XIO_TCP_KEY_FILE='{}' cannot be read: {}", path, errno_text(err));
  return text;
}

constexpr std::size_t k_hex_digits = 2 * secret::k_bytes;

bool take_hex(std::string_view text, secret& out) {
  if (text.size() != k_hex_digits) return false;
  for (std::size_t i = 0; i < secret::k_bytes; ++i) {
    const char* two = text.data() + 2 * i;
    if (const auto [end, ec] = std::from_chars(two, two + 2, out.data()[i], 16); ec != std::errc() || end != two + 2)
      return false;
  }
  return true;
}

}  // namespace

bool has_key(const bootstrap_options& o) { return !o.tcp_key.empty() || !o.tcp_key_file.empty(); }

secret load_key(const bootstrap_options& o) {
  if (!o.tcp_key.empty() && !o.tcp_key_file.empty())
    fail(XIO_ERR_CONFIG, "XIO_TCP_KEY and XIO_TCP_KEY_FILE are both set; unset one of them");
  if (!has_key(o))
    fail(XIO_ERR_CONFIG,
         "the TCP bootstrap has no key; give every rank the same XIO_TCP_KEY, or XIO_TCP_KEY_FILE with a file of mode "
         "0600, or start the ranks with xiorun");
  const secret_text text = o.tcp_key_file.empty() ? o.tcp_key : read_key_file(o.tcp_key_file);
  if (text.size() < k_key_text_min)
    fail(XIO_ERR_CONFIG, "the key in {} has {} characters, fewer than {}; make one with: openssl rand -hex 32",
         o.tcp_key_file.empty() ? "XIO_TCP_KEY" : "XIO_TCP_KEY_FILE='" + o.tcp_key_file + "'", text.size(),
         k_key_text_min);
  secret given, key;
  if (!take_hex(text.view(), given)) crypto::stretch(text.view(), given.room());
  mac(given.data(), "xio tcp bootstrap 4").result(key.data());
  return key;
}

}  // namespace xio::bootstrap
