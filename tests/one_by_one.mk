# SPDX-License-Identifier: MIT
# For GPUs: programs that share one have it by time slices, and those of several PEs wait for each other's, so tests run
# one at a time. (A file of its own, because Automake would take this for a rule that replaces its own.)
check-TESTS: AM_MAKEFLAGS += -j1
# And slowly: route_rdma takes ten minutes where PEs share a GPU.
XIO_TEST_LIMIT = 1200
