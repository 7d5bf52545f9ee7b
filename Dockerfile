# SPDX-License-Identifier: MIT
# An image with XIO's tools, library and headers; docs/containers.md says what its containers need.
#   docker build -t xio .                       for CPUs: kernels run on CPU threads
#   docker build -t xio --build-arg gpu=hip .   for AMD GPUs, with Debian's HIP
FROM debian:12 AS build
ARG gpu=host
RUN apt-get update && apt-get install -y --no-install-recommends \
  autoconf automake ca-certificates g++ git libtool make pkgconf libboost-context-dev libcli11-dev libfmt-dev libhwloc-dev \
  libibverbs-dev libopenmpi-dev libsodium-dev libspdlog-dev liburing-dev nlohmann-json3-dev $( [ "$gpu" != hip ] || echo hipcc libhsakmt-dev )
COPY . /xio
RUN cd /xio && ./autogen.sh && mkdir -p /build && cd /build && /xio/configure --with-gpu="$gpu" && make -j"$(nproc)" && \
  make install DESTDIR=/image

FROM debian:12
ARG gpu=host
RUN apt-get update && apt-get install -y --no-install-recommends \
  g++ pkgconf libboost-context1.74.0 libfmt9 libhwloc15 libibverbs1 ibverbs-providers libsodium23 libspdlog1.10 liburing2 \
  $( [ "$gpu" != hip ] || echo hipcc libhsakmt1 ) && rm -rf /var/lib/apt/lists/*
COPY --from=build /image/ /
RUN ldconfig
CMD ["xio-info"]
