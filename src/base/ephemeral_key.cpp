// SPDX-License-Identifier: MIT
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#ifdef HAVE_SODIUM
#include <sodium.h>

#include "base/ephemeral_key.hpp"

namespace xio {

static_assert(ephemeral_key::k_bytes == crypto_kx_PUBLICKEYBYTES && ephemeral_key::k_bytes == crypto_kx_SECRETKEYBYTES);
static_assert(ephemeral_key::k_bytes == crypto_kx_SESSIONKEYBYTES);

ephemeral_key::ephemeral_key() { crypto_kx_keypair(public_half_.data(), own_.data()); }

ephemeral_key::ephemeral_key(const half& own) : own_(own) { crypto_scalarmult_base(public_half_.data(), own_.data()); }

ephemeral_key::~ephemeral_key() { sodium_memzero(own_.data(), own_.size()); }

bool ephemeral_key::agree(role us, const unsigned char* theirs, half& from_caller, half& from_callee) const {
  if (us == role::caller)
    return crypto_kx_client_session_keys(from_callee.data(), from_caller.data(), public_half_.data(), own_.data(),
                                         theirs) == 0;
  return crypto_kx_server_session_keys(from_caller.data(), from_callee.data(), public_half_.data(), own_.data(),
                                       theirs) == 0;
}

}  // namespace xio
#endif  // HAVE_SODIUM
