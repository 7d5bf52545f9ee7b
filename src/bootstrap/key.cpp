// SPDX-License-Identifier: MIT
#include "bootstrap/key.hpp"

#include "config.h"

#include <cstring>

namespace xio::bootstrap {

secret::~secret() { explicit_bzero(bytes_.data(), bytes_.size()); }

}  // namespace xio::bootstrap

#ifdef HAVE_SODIUM
#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "base/error.hpp"
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
  sodium_memzero(buffer, sizeof buffer);
  if (n < 0) fail(XIO_ERR_IO, "XIO_TCP_KEY_FILE='{}' cannot be read: {}", path, errno_text(err));
  return text;
}

// Everything that has to be tried for one guess at a passphrase. RFC 9106 is the function; these are the costs that
// OWASP's password storage sheet calls a minimum.
constexpr unsigned long long k_passes = 3;
constexpr std::size_t k_pass_bytes = std::size_t{12} << 20;
constexpr std::size_t k_hex_digits = 2 * secret::k_bytes;

// Every rank has to come to the same bytes before it has met another, so the salt is a constant.
constexpr unsigned char k_salt[crypto_pwhash_SALTBYTES + 1] = "xio tcp key salt";
constexpr unsigned char k_purpose[] = "xio tcp bootstrap 2";

bool take_hex(std::string_view text, secret& out) {
  std::size_t bytes = 0;
  return text.size() == k_hex_digits &&
         sodium_hex2bin(out.data(), secret::k_bytes, text.data(), text.size(), nullptr, &bytes, nullptr) == 0 &&
         bytes == secret::k_bytes;
}

void stretch(std::string_view text, secret& out) {
  if (crypto_pwhash(out.data(), secret::k_bytes, text.data(), text.size(), k_salt, k_passes, k_pass_bytes,
                    crypto_pwhash_ALG_ARGON2ID13) != 0)
    fail(XIO_ERR_NO_MEMORY,
         "no {} bytes of memory are left to stretch the key of the TCP bootstrap; raise the limit, or give a key of {} "
         "hexadecimal digits, which needs none: openssl rand -hex {}",
         k_pass_bytes, k_hex_digits, secret::k_bytes);
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
  if (!take_hex(text.view(), given)) stretch(text.view(), given);
  crypto_generichash(key.data(), secret::k_bytes, given.data(), secret::k_bytes, k_purpose, sizeof k_purpose - 1);
  return key;
}

}  // namespace xio::bootstrap
#endif  // HAVE_SODIUM
