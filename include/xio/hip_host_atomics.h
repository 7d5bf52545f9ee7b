// SPDX-License-Identifier: MIT
// HIP's atomics on the host platform; include <xio/hip.h>. Those of CUDA's names are relaxed, as on GPUs. A scope makes
// no difference here: threads of a process, and processes, see the same memory.
#pragma once
#include <type_traits>

#define XIO_HOST_ATOMIC(name, builtin)                \
  template <class T>                                  \
  T name(T* address, std::type_identity_t<T> value) { \
    return builtin(address, value, __ATOMIC_RELAXED); \
  }
XIO_HOST_ATOMIC(atomicSub, __atomic_fetch_sub)
XIO_HOST_ATOMIC(atomicAnd, __atomic_fetch_and)
XIO_HOST_ATOMIC(atomicOr, __atomic_fetch_or)
XIO_HOST_ATOMIC(atomicXor, __atomic_fetch_xor)
#undef XIO_HOST_ATOMIC

template <class T>
T atomicCAS(T* address, std::type_identity_t<T> compare, std::type_identity_t<T> value) {
  __atomic_compare_exchange(address, &compare, &value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return compare;
}
template <class T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  T old;
  __atomic_exchange(address, &value, &old, __ATOMIC_RELAXED);
  return old;
}
// *address = change(*address); gives the old value.
template <class T, class Change>
T xio_host_atomic_update(T* address, Change change, int order = __ATOMIC_RELAXED) {
  T old;
  __atomic_load(address, &old, __ATOMIC_RELAXED);
  for (T value = change(old); !__atomic_compare_exchange(address, &old, &value, true, order, __ATOMIC_RELAXED);)
    value = change(old);
  return old;
}
template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  if constexpr (std::is_integral_v<T>)
    return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
  else
    return xio_host_atomic_update(address, [=](T old) { return static_cast<T>(old + value); });
}
template <class T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  return xio_host_atomic_update(address, [=](T old) { return old < value ? value : old; });
}
template <class T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  return xio_host_atomic_update(address, [=](T old) { return value < old ? value : old; });
}

// --- Clang's, with an order and a scope --------------------------------------------------------------

#define __HIP_MEMORY_SCOPE_SINGLETHREAD 1
#define __HIP_MEMORY_SCOPE_WAVEFRONT 2
#define __HIP_MEMORY_SCOPE_WORKGROUP 3
#define __HIP_MEMORY_SCOPE_AGENT 4
#define __HIP_MEMORY_SCOPE_SYSTEM 5

template <class T>
std::remove_cv_t<T> xio_host_atomic_load(T* address, int order, int) {
  std::remove_cv_t<T> value;
  __atomic_load(address, &value, order);
  return value;
}
template <class T>
void xio_host_atomic_store(T* address, std::type_identity_t<std::remove_cv_t<T>> value, int order, int) {
  __atomic_store(address, &value, order);
}
template <class T>
std::remove_cv_t<T> xio_host_atomic_exchange(T* address, std::type_identity_t<std::remove_cv_t<T>> value, int order,
                                             int) {
  std::remove_cv_t<T> old;
  __atomic_exchange(address, &value, &old, order);
  return old;
}
template <class T>
bool xio_host_atomic_compare_exchange(T* address, std::remove_cv_t<T>* expected,
                                      std::type_identity_t<std::remove_cv_t<T>> value, int order, int failed, int) {
  return __atomic_compare_exchange(address, expected, &value, false, order, failed);
}
#define XIO_HOST_FETCH(name, expression)                                    \
  template <class T>                                                        \
  T name(T* address, std::type_identity_t<T> value, int order, int) {       \
    return xio_host_atomic_update(                                          \
        address, [=](T old) { return static_cast<T>(expression); }, order); \
  }
XIO_HOST_FETCH(xio_host_atomic_fetch_add, old + value)
XIO_HOST_FETCH(xio_host_atomic_fetch_sub, old - value)
XIO_HOST_FETCH(xio_host_atomic_fetch_and, old& value)
XIO_HOST_FETCH(xio_host_atomic_fetch_or, old | value)
XIO_HOST_FETCH(xio_host_atomic_fetch_xor, old ^ value)
XIO_HOST_FETCH(xio_host_atomic_fetch_min, value < old ? value : old)
XIO_HOST_FETCH(xio_host_atomic_fetch_max, old < value ? value : old)
#undef XIO_HOST_FETCH

// Macros, because clang knows the names as built-ins in every language.
#define __hip_atomic_load(...) xio_host_atomic_load(__VA_ARGS__)
#define __hip_atomic_store(...) xio_host_atomic_store(__VA_ARGS__)
#define __hip_atomic_exchange(...) xio_host_atomic_exchange(__VA_ARGS__)
#define __hip_atomic_compare_exchange_strong(...) xio_host_atomic_compare_exchange(__VA_ARGS__)
#define __hip_atomic_compare_exchange_weak(...) xio_host_atomic_compare_exchange(__VA_ARGS__)
#define __hip_atomic_fetch_add(...) xio_host_atomic_fetch_add(__VA_ARGS__)
#define __hip_atomic_fetch_sub(...) xio_host_atomic_fetch_sub(__VA_ARGS__)
#define __hip_atomic_fetch_and(...) xio_host_atomic_fetch_and(__VA_ARGS__)
#define __hip_atomic_fetch_or(...) xio_host_atomic_fetch_or(__VA_ARGS__)
#define __hip_atomic_fetch_xor(...) xio_host_atomic_fetch_xor(__VA_ARGS__)
#define __hip_atomic_fetch_min(...) xio_host_atomic_fetch_min(__VA_ARGS__)
#define __hip_atomic_fetch_max(...) xio_host_atomic_fetch_max(__VA_ARGS__)
