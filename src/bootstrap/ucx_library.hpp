// SPDX-License-Identifier: MIT
// UCX, loaded when its bootstrap is asked for: its constructors take the process's handlers of SIGSEGV and others, so
// no program gets them for the mere reason that it is linked with libxio.
//
// Code in namespace xio::bootstrap calls UCX's functions by their own names, and gets these pointers.
#pragma once
#include <ucp/api/ucp.h>

// Every function that is used; another one goes here first.
#define XIO_UCX_FUNCTIONS(X)    \
  X(ucp_init_version)           \
  X(ucp_cleanup)                \
  X(ucp_config_read)            \
  X(ucp_config_modify)          \
  X(ucp_config_release)         \
  X(ucp_worker_create)          \
  X(ucp_worker_destroy)         \
  X(ucp_worker_progress)        \
  X(ucp_worker_get_address)     \
  X(ucp_worker_release_address) \
  X(ucp_ep_create)              \
  X(ucp_ep_close_nbx)           \
  X(ucp_tag_send_nbx)           \
  X(ucp_tag_recv_nbx)           \
  X(ucp_tag_recv_request_test)  \
  X(ucp_request_check_status)   \
  X(ucp_request_cancel)         \
  X(ucp_request_free)           \
  X(ucs_status_string)

namespace xio::bootstrap {

#define XIO_DECLARE(name) extern decltype(&::name) name;
XIO_UCX_FUNCTIONS(XIO_DECLARE)
#undef XIO_DECLARE

// The header's own is inline and calls the library. An object, since a function here would not hide that one.
inline constexpr auto ucp_init = [](const ucp_params_t* params, const ucp_config_t* config, ucp_context_h* context) {
  return ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, params, config, context);
};

// Before any of them. Keeps the signal handlers that the process has, unless UCX_HANDLE_ERRORS asks for UCX's. Throws
// XIO_ERR_UNSUPPORTED where the library is not installed or lacks a function.
void load_ucx();

}  // namespace xio::bootstrap
