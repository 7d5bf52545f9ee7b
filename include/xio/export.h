/* SPDX-License-Identifier: MIT */
/* XIO_EXPORT marks what libxio.so shows; everything else in it is hidden (-fvisibility=hidden). */
#ifndef XIO_EXPORT_H
#define XIO_EXPORT_H

#define XIO_EXPORT __attribute__((visibility("default")))

#endif
