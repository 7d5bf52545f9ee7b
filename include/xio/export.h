/* SPDX-License-Identifier: MIT */
/* XIO_EXPORT marks what libxio.so shows; everything else in it is hidden (-fvisibility=hidden). */
#ifndef XIO_EXPORT_H
#define XIO_EXPORT_H

#define XIO_EXPORT __attribute__((visibility("default")))

/* In C++ an enum that a program may set to a wrong number has a fixed type, so that a call can refuse it. */
#ifdef __cplusplus
#define XIO_ENUM_OF_INT : int
#else
#define XIO_ENUM_OF_INT
#endif

#endif
