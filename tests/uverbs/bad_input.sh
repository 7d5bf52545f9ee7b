#!/bin/bash
# SPDX-License-Identifier: MIT
# A device of one PE that cannot make queues: every PE says in one sentence which device, what its firmware said, and the
# cure; every PE fails, in time.
# shellcheck source=tests/uverbs/queues.sh
. "${0%/*}/queues.sh" mlx5 || exit 1
: "${start:?}"
unset XIO_TIMEOUT_MS
# In a session of its own, of which the first process has the faults.
launch() { env -u LD_PRELOAD -u SYSFS_PATH XIO_TEST_UVERBS_FAULTS_AT=1 "${0%/*}/run" "$start" -n "${@:2}"; }

device='mlx5_0:1 .*'
expect port_down 'RDMA device mlx5_0 port 1 is not up \(down\); bring up its link'
expect no_devx 'RDMA device mlx5_0 port 1 takes no firmware commands from users \(DEVX\).*; grant CAP_NET_RAW'
expect no_uncached 'RDMA device mlx5_0 port 1 gives no uncached doorbell page: Operation not supported; .*Linux 5.7'
expect no_register 'mlx5_0 port 1 cannot register [0-9]+ bytes at .*: Bad address; .*peer-memory module'
expect shallow 'a queue depth of 256 is not possible on RDMA device mlx5_0, .*; set XIO_RING_DEPTH'
expect half_deaf 'PE 0.*RDMA device mlx5_0 has done within 5000 ms only 4 of 8 writes whose doorbells a kernel rang'
# Each command, each status.
expect 400:f "${device}no completion queue of 256 entries: no resources left \(status 0xf, syndrome 0x51afff\); end other users"
expect 500:8 "${device}no queue pair of 256 entries: a limit exceeded \(status 0x8, syndrome 0x51afff\); lower XIO_RING_DEPTH"
expect 500:3 "${device}no queue pair of 256 entries: a bad parameter \(status 0x3, .*; check XIO_RDMA_"
expect 502:5 "${device}does not go from RESET to INIT: a bad resource \(status 0x5, "
expect 503:a "${device}does not go from INIT to RTR: a bad index \(status 0xa, .*; check XIO_RDMA_GID_INDEX"
expect 504:10 "${device}does not go from RTR to RTS: a bad state of the queue pair \(status 0x10, .*; check that"

# mixed FAMILY TEXT: PE 0 has a ConnectX and PE 1 a Thor2, and both say TEXT.
mixed() {
  local out
  # shellcheck disable=SC2016  # for the inner shell
  out=$(env -u LD_PRELOAD -u SYSFS_PATH XIO_ROUTE=rdma XIO_NIC_FAMILY="$1" XIO_LOG_LEVEL=info timeout -k 5 90 "$start" -n 2 bash -c '
    nics=(mlx5 bnxt) rank=${XIO_TCP_RANK:-${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}}
    XIO_TEST_UVERBS_NIC=${nics[rank]} exec "$@"' - "${0%/*}/run" timeout -k 5 60 "$builddir/tests/mpi/signals" 2>&1)
  if [ "$(grep -cE "$2" <<<"$out")" = 2 ]; then
    echo "ok   two kinds of NIC, family $1"
    return
  fi
  fail "two kinds of NIC, family $1: expected on every PE: $2" <(cat <<<"$out")
}
mixed mlx5 'xio_ctx_create.*XIO_NIC_FAMILY=mlx5 on PE 0 asks for queues .* PE 1 has none: RDMA device bnxt_re0 has queues of bnxt; set '
mixed auto 'kernels reach devices through the proxy: .*PE 0 has queues of mlx5 and PE 1 of bnxt, .*; choose NICs of one vendor with XIO_HCA_LIST'

# A device whose clock has another format is taken.
XIO_TEST_UVERBS_FAULTS=real_time_clock suite any 2 rdma signals
posts 'kernels_post *yes (it takes firmware commands'
XIO_TEST_UVERBS_FAULTS=no_devx posts 'kernels_post *no (it takes no firmware commands from users (DEVX): .*grant CAP_NET_RAW'
end
