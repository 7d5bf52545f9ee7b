// SPDX-License-Identifier: MIT
// The forms of a call: for one thread, for all threads of a wave, and for all threads of a workgroup. A header of calls
// declares them together, with all names in full; impl/ defines them together. docs/headers.awk shows each to Doxygen.
#pragma once
#include <type_traits>

#include "xio/device/impl/scope.hpp"
#include "xio/xio.h"

// Declares calls with the same parameters: an op, which returns its status, and with `_nbi` its request; the three
// forms of another call; or the two that a group makes.
#define XIO_OP(thread, wave, workgroup, thread_nbi, wave_nbi, workgroup_nbi, parameters) \
  XIO_FORMS(xio_status_t, thread, wave, workgroup, parameters);                          \
  XIO_FORMS(xio_req_t, thread_nbi, wave_nbi, workgroup_nbi, parameters)
#define XIO_FORMS(returns, thread, wave, workgroup, parameters) \
  XIO_DEVICE returns thread parameters;                         \
  XIO_GROUP_FORMS(returns, wave, workgroup, parameters)
#define XIO_GROUP_FORMS(returns, wave, workgroup, parameters) \
  XIO_DEVICE returns wave parameters;                         \
  XIO_DEVICE returns workgroup parameters

// Defines them: what each returns, where `g` is the group that calls. arguments: in parentheses, those that are the
// same for all threads of the group.
#define XIO_DEFINE_FORM(returns, name, kind, parameters, arguments, ...)      \
  XIO_DEVICE returns name parameters {                                        \
    XIO_ENTER_##kind(#name, arguments) const auto g = xio::dev::kind::here(); \
    return __VA_ARGS__;                                                       \
  }
#define XIO_DEFINE_GROUP_FORMS(returns, name, parameters, arguments, ...)               \
  XIO_DEFINE_FORM(returns, name##_wave, wave_group, parameters, arguments, __VA_ARGS__) \
  XIO_DEFINE_FORM(returns, name##_wg, workgroup_group, parameters, arguments, __VA_ARGS__)
#define XIO_DEFINE_FORMS(returns, name, parameters, arguments, ...)                \
  XIO_DEFINE_FORM(returns, name, thread_group, parameters, arguments, __VA_ARGS__) \
  XIO_DEFINE_GROUP_FORMS(returns, name, parameters, arguments, __VA_ARGS__)

// Defines the forms of an op, with and without `_nbi`, by call(arguments..., blocking), which returns a posted.
#define XIO_DEFINE_OP(name, parameters, call, ...)                                                   \
  XIO_DEFINE_FORMS(xio_status_t, name, parameters, (__VA_ARGS__), call(g, __VA_ARGS__, true).status) \
  XIO_DEFINE_FORMS(xio_req_t, name##_nbi, parameters, (__VA_ARGS__), call(g, __VA_ARGS__, false).request)
