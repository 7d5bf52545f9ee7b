// SPDX-License-Identifier: MIT
// XIO_EACH(MACRO, (a, b), (c, d), ...): MACRO(a, b); MACRO(c, d); and so on, for lists of constants.
#pragma once

// Each scan of the preprocessor does one of what is left.
#define XIO_EACH(what, ...) XIO_SCAN_4(XIO_NEXT(what, __VA_ARGS__))
#define XIO_NEXT(what, item, ...) \
  what item;                      \
  __VA_OPT__(XIO_NEXT_LATER XIO_NO_ARGUMENTS(what, __VA_ARGS__))
#define XIO_NEXT_LATER() XIO_NEXT
#define XIO_NO_ARGUMENTS ()
#define XIO_SCAN_4(...) XIO_SCAN_3(XIO_SCAN_3(XIO_SCAN_3(XIO_SCAN_3(__VA_ARGS__))))
#define XIO_SCAN_3(...) XIO_SCAN_2(XIO_SCAN_2(XIO_SCAN_2(XIO_SCAN_2(__VA_ARGS__))))
#define XIO_SCAN_2(...) XIO_SCAN_1(XIO_SCAN_1(XIO_SCAN_1(XIO_SCAN_1(__VA_ARGS__))))
#define XIO_SCAN_1(...) __VA_ARGS__
