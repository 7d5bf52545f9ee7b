// SPDX-License-Identifier: MIT
// What cuda.hpp has in PTX: scoped atomics, fences, accesses by predicates, halves. Those of agent and system scope
// name the global state space, which is all memory that other workgroups and devices reach: through pointers that could
// be to anything a load takes longer, and an atomic is a branch among three (PTX ISA, ld, st, atom, fence;
// docs/performance.md).
#if defined(XIO_ON_CUDA) && !defined(XIO_DEVICE_PTX_HPP)
#define XIO_DEVICE_PTX_HPP
#include <cstddef>
#include <cstdint>

namespace xio::dev {

// Calls F(scope and state space, ...) with the text for S.
#define XIO_PTX_BY_SCOPE(F, ...)            \
  if constexpr (S == scope::workgroup) {    \
    F(".cta", __VA_ARGS__);                 \
  } else if constexpr (S == scope::agent) { \
    F(".gpu.global", __VA_ARGS__);          \
  } else {                                  \
    F(".sys.global", __VA_ARGS__);          \
  }

namespace ptx {

// The unsigned integer of `Bytes` that holds the value in registers; PTX has none of one byte.
template <std::size_t Bytes>
struct word;
template <>
struct word<1> {
  using type = std::uint16_t;
};
template <>
struct word<2> {
  using type = std::uint16_t;
};
template <>
struct word<4> {
  using type = std::uint32_t;
};
template <>
struct word<8> {
  using type = unsigned long long;
};
template <class T>
using word_of = typename word<sizeof(T)>::type;

template <class T>
XIO_DEVICE word_of<T> to_word(T value) {
  word_of<T> w = 0;
  __builtin_memcpy(&w, &value, sizeof value);
  return w;
}
template <class T>
XIO_DEVICE T of_word(word_of<T> w) {
  T value;
  __builtin_memcpy(&value, &w, sizeof value);
  return value;
}

}  // namespace ptx

#define XIO_PTX_FENCE(where, order) asm volatile("fence" order where ";" ::: "memory")
#define XIO_PTX_FENCE_BY_SCOPE(order)       \
  if constexpr (S == scope::workgroup) {    \
    XIO_PTX_FENCE(".cta", order);           \
  } else if constexpr (S == scope::agent) { \
    XIO_PTX_FENCE(".gpu", order);           \
  } else {                                  \
    XIO_PTX_FENCE(".sys", order);           \
  }
template <scope S, order O>
XIO_DEVICE void fence() {
  if constexpr (O == order::seq_cst) {
    XIO_PTX_FENCE_BY_SCOPE(".sc")
#if defined(XIO_PTX_ONE_WAY_FENCES)
  } else if constexpr (O == order::acquire) {
    // Does not wait for the thread's own stores.
    XIO_PTX_FENCE_BY_SCOPE(".acquire")
  } else if constexpr (O == order::release) {
    // Leaves the caches as they are.
    XIO_PTX_FENCE_BY_SCOPE(".release")
#endif
  } else if constexpr (O != order::relaxed) {
    XIO_PTX_FENCE_BY_SCOPE(".acq_rel")
  }
}
#undef XIO_PTX_FENCE_BY_SCOPE
#undef XIO_PTX_FENCE

namespace ptx {
// Sequentially consistent ops are a fence and the op (PTX ISA, memory consistency model; the mapping of C++).
template <scope S, order O>
XIO_DEVICE void fence_before() {
  if constexpr (O == order::seq_cst) fence<S, O>();
}
}  // namespace ptx

#define XIO_PTX_LOAD(where, order, type, reg) \
  asm volatile("ld" order where "." type " %0, [%1];" : "=" reg(w) : "l"(p) : "memory")
#define XIO_PTX_STORE(where, order, type, reg) \
  asm volatile("st" order where "." type " [%0], %1;" ::"l"(p), reg(w) : "memory")
#define XIO_PTX_RMW(where, order, op, type, reg) \
  asm volatile("atom" order where op type " %0, [%1], %2;" : "=" reg(old) : "l"(p), reg(w) : "memory")
#define XIO_PTX_RED(where, op, type, reg) \
  asm volatile("red.relaxed" where op type " [%0], %1;" ::"l"(p), reg(w) : "memory")
#define XIO_PTX_COMPARE(where, order, type) "atom" order where ".cas." type " %0, [%1], %2, %3;"
#define XIO_PTX_CAS(where, order, type, reg) \
  asm volatile(XIO_PTX_COMPARE(where, order, type) : "=" reg(old) : "l"(p), reg(e), reg(w) : "memory")
#define XIO_PTX_BY_SIZE(what, order)          \
  if constexpr (sizeof(T) == 1) {             \
    XIO_PTX_BY_SCOPE(what, order, "b8", "h")  \
  } else if constexpr (sizeof(T) == 2) {      \
    XIO_PTX_BY_SCOPE(what, order, "b16", "h") \
  } else if constexpr (sizeof(T) == 4) {      \
    XIO_PTX_BY_SCOPE(what, order, "b32", "r") \
  } else {                                    \
    XIO_PTX_BY_SCOPE(what, order, "b64", "l") \
  }

template <scope S, order O, class T>
XIO_DEVICE T load(const T* p) {
  static_assert(O == order::relaxed || O == order::acquire || O == order::seq_cst);
  ptx::fence_before<S, O>();
  ptx::word_of<T> w;
  if constexpr (O != order::relaxed) {
    XIO_PTX_BY_SIZE(XIO_PTX_LOAD, ".acquire")
  } else {
    XIO_PTX_BY_SIZE(XIO_PTX_LOAD, ".relaxed")
  }
  return ptx::of_word<T>(w);
}

template <scope S, order O, class T>
XIO_DEVICE void store(T* p, T value) {
  static_assert(O == order::relaxed || O == order::release || O == order::seq_cst);
  ptx::fence_before<S, O>();
  const ptx::word_of<T> w = ptx::to_word(value);
  if constexpr (O != order::relaxed) {
    XIO_PTX_BY_SIZE(XIO_PTX_STORE, ".release")
  } else {
    XIO_PTX_BY_SIZE(XIO_PTX_STORE, ".relaxed")
  }
}

// Stores of .mmio are all performed, and none is combined with another (PTX ISA 8.2, CUDA 12.2, memory consistency
// model, mmio operations). They are relaxed.
template <class T>
XIO_DEVICE void ring_doorbell(T* p, T value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  fence<scope::system, order::release>();
  const ptx::word_of<T> w = ptx::to_word(value);
  if constexpr (sizeof(T) == 4) {
    XIO_PTX_STORE(".mmio.relaxed.sys.global", "", "b32", "r");
  } else {
    XIO_PTX_STORE(".mmio.relaxed.sys.global", "", "b64", "l");
  }
}

// Two words that lie side by side, 16-byte aligned, in one access: each of them whole, and relaxed, at system scope
// (PTX ISA: a vector access is one of each element, in no order).
XIO_DEVICE void store_pair(u64* p, u64 a, u64 b) {
  asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};" ::"l"(p), "l"(a), "l"(b) : "memory");
}
XIO_DEVICE void load_pair(const u64* p, u64& a, u64& b) {
  asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];" : "=l"(a), "=l"(b) : "l"(p) : "memory");
}

// Where `good` only, by a predicate and not by a branch. Stores are relaxed, at system scope; the load is a plain one
// of 8 bytes of any memory, and 0 where it is not good.
XIO_DEVICE void store_word_if(bool good, u64* p, u64 v) {
  asm volatile(
      "{ .reg .pred q; setp.ne.s32 q, %0, 0; @q st.relaxed.sys.global.b64 [%1], %2; }" ::"r"(static_cast<int>(good)),
      "l"(p), "l"(v)
      : "memory");
}
XIO_DEVICE void store_pair_if(bool good, u64* p, u64 a, u64 b) {
  asm volatile("{ .reg .pred q; setp.ne.s32 q, %0, 0; @q st.relaxed.sys.global.v2.b64 [%1], {%2, %3}; }" ::"r"(
                   static_cast<int>(good)),
               "l"(p), "l"(a), "l"(b)
               : "memory");
}
XIO_DEVICE u64 load_any_if(bool good, const void* p) {
  u64 v;
  asm volatile("{ .reg .pred q; setp.ne.s32 q, %1, 0; mov.b64 %0, 0; @q ld.b64 %0, [%2]; }"
               : "=&l"(v)
               : "r"(static_cast<int>(good)), "l"(p)
               : "memory");
  return v;
}

#define XIO_PTX_LOAD_IF(type, wide, reg)                                                                  \
  asm volatile("{ .reg .pred q; setp.ne.s32 q, %1, 0; mov." wide " %0, 0; @q ld.relaxed.sys.global." type \
               " %0, [%2]; }"                                                                             \
               : "=&" reg(w)                                                                              \
               : "r"(static_cast<int>(good)), "l"(p)                                                      \
               : "memory")
// Relaxed, at system scope.
template <class T>
XIO_DEVICE T load_word_if(bool good, const T* p) {
  ptx::word_of<T> w;
  if constexpr (sizeof(T) == 1) {
    XIO_PTX_LOAD_IF("b8", "b16", "h");
  } else if constexpr (sizeof(T) == 2) {
    XIO_PTX_LOAD_IF("b16", "b16", "h");
  } else if constexpr (sizeof(T) == 4) {
    XIO_PTX_LOAD_IF("b32", "b32", "r");
  } else {
    XIO_PTX_LOAD_IF("b64", "b64", "l");
  }
  return ptx::of_word<T>(w);
}
#undef XIO_PTX_LOAD_IF

// Read-modify-write of 4 or 8 bytes: `op` with its dots, types for 4 and 8 bytes.
#define XIO_PTX_ATOM(order, op, type4, type8)            \
  if constexpr (sizeof(T) == 4) {                        \
    XIO_PTX_BY_SCOPE(XIO_PTX_RMW, order, op, type4, "r") \
  } else {                                               \
    XIO_PTX_BY_SCOPE(XIO_PTX_RMW, order, op, type8, "l") \
  }
#define XIO_PTX_CHANGE(name, op, type4, type8)       \
  template <scope S, order O, class T>               \
  XIO_DEVICE T name(T* p, T value) {                 \
    static_assert(sizeof(T) == 4 || sizeof(T) == 8); \
    ptx::fence_before<S, O>();                       \
    const ptx::word_of<T> w = ptx::to_word(value);   \
    ptx::word_of<T> old;                             \
    if constexpr (O == order::relaxed) {             \
      XIO_PTX_ATOM(".relaxed", op, type4, type8)     \
    } else if constexpr (O == order::acquire) {      \
      XIO_PTX_ATOM(".acquire", op, type4, type8)     \
    } else if constexpr (O == order::release) {      \
      XIO_PTX_ATOM(".release", op, type4, type8)     \
    } else {                                         \
      XIO_PTX_ATOM(".acq_rel", op, type4, type8)     \
    }                                                \
    return ptx::of_word<T>(old);                     \
  }
XIO_PTX_CHANGE(exchange, ".exch.", "b32", "b64")
XIO_PTX_CHANGE(fetch_add, ".add.", "u32", "u64")
XIO_PTX_CHANGE(fetch_and, ".and.", "b32", "b64")
XIO_PTX_CHANGE(fetch_or, ".or.", "b32", "b64")
XIO_PTX_CHANGE(fetch_xor, ".xor.", "b32", "b64")

template <scope S, order O, class T>
XIO_DEVICE void add(T* p, T value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  const ptx::word_of<T> w = ptx::to_word(value);
  if constexpr (O != order::relaxed) {
    (void)fetch_add<S, O>(p, value);
  } else if constexpr (sizeof(T) == 4) {
    XIO_PTX_BY_SCOPE(XIO_PTX_RED, ".add.", "u32", "r")
  } else {
    XIO_PTX_BY_SCOPE(XIO_PTX_RED, ".add.", "u64", "l")
  }
}

// Adds to a float or double, relaxed. A float's subnormal values may count as 0 (PTX ISA, atom).
constexpr bool k_adds_floats = true;
XIO_DEVICE float fetch_add_float(float* p, float w) {
  float old;
  XIO_PTX_RMW(".sys.global", ".relaxed", ".add.", "f32", "f");
  return old;
}
XIO_DEVICE double fetch_add_float(double* p, double w) {
  double old;
  XIO_PTX_RMW(".sys.global", ".relaxed", ".add.", "f64", "d");
  return old;
}

template <scope S, order O, class T>
XIO_DEVICE bool compare_exchange(T* p, T& expected, T desired) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  ptx::fence_before<S, O>();
  const ptx::word_of<T> e = ptx::to_word(expected), w = ptx::to_word(desired);
  ptx::word_of<T> old;
  if constexpr (O == order::relaxed) {
    XIO_PTX_BY_SIZE(XIO_PTX_CAS, ".relaxed")
  } else if constexpr (O == order::acquire) {
    XIO_PTX_BY_SIZE(XIO_PTX_CAS, ".acquire")
  } else if constexpr (O == order::release) {
    XIO_PTX_BY_SIZE(XIO_PTX_CAS, ".release")
  } else {
    XIO_PTX_BY_SIZE(XIO_PTX_CAS, ".acq_rel")
  }
  if (old == e) return true;
  expected = ptx::of_word<T>(old);
  return false;
}

#undef XIO_PTX_CHANGE
#undef XIO_PTX_ATOM
#undef XIO_PTX_BY_SIZE
#undef XIO_PTX_CAS
#undef XIO_PTX_COMPARE
#undef XIO_PTX_RED
#undef XIO_PTX_RMW
#undef XIO_PTX_STORE
#undef XIO_PTX_LOAD
#undef XIO_PTX_BY_SCOPE

// --- Halves ------------------------------------------------------------------------------------------

XIO_DEVICE float float_of_half(u16 half) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
  return value;
}
XIO_DEVICE u16 half_of_float(float value) {
  u16 half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
  return half;
}

}  // namespace xio::dev

#endif
