#!/bin/bash
# SPDX-License-Identifier: MIT
# Worlds below a launcher that speaks PMI-2 and nothing else (pmi2_server.cpp), also one that makes mistakes.
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${builddir:?}" "${work=}"
proves || skip 'a build without libsodium and OpenSSL leaves PMI-2 to MPI'
server=$builddir/tests/mpi/pmi2_server
probe=$builddir/tests/mpi/bootstrap_probe
make_work
unset XIO_BOOTSTRAP "${!PMI_@}" "${!PMIX_@}" "${!OMPI_@}" "${!SLURM_@}"
export XIO_TIMEOUT_MS=20000

by_pmi2=(env XIO_BOOTSTRAP=pmi2)
for n in 1 2 5; do gives 0 "$n" "^rank [0-4] of $n by tcp" "${by_pmi2[@]}" "$server" $n none "$probe" who; done
# Several worlds by one conversation, and messages in them.
gives 0 0 '' env XIO_BOOTSTRAP=pmi2 XIO_TEST_SIZE=3 "$server" 3 none "$probe" worlds tcp
# What Slurm sets beside it makes it auto's choice; Slurm's own variables are of no other use here.
gives 0 2 '^rank [01] of 2 by tcp' env SLURM_STEP_ID=0 "$server" 2 none "$probe" who

# wrong FAULT LINES 'SENTENCE'
wrong() { gives 3 "$2" "$3" "${by_pmi2[@]}" "$server" 2 "$1" "$probe" who; }
wrong version 2 "^XIO_ERR_PEER: the launcher at PMI_FD=[0-9]+ does not speak PMI-2, it says 'cmd=response_to_init pmi_version=1"
wrong length 2 "^XIO_ERR_PEER: the launcher's reply to fullinit .* begins with 'sixsix', which is no length"
wrong other 2 "^XIO_ERR_PEER: .* says 'cmd=job-getid-response;rc=0;jobid=1;' where its reply to fullinit is due"
wrong close 2 '^XIO_ERR_PEER: .* went away instead of replying to kvs-fence'
gives 3 2 '^XIO_ERR_TIMEOUT: .* did not reply to kvs-fence within 500 ms' "${by_pmi2[@]}" XIO_TIMEOUT_MS=500 "$server" 2 silent "$probe" who
# The rank whose put is refused says so; the other one waits for it.
gives 3 1 '^XIO_ERR_PEER: .* refused kvs-put: rc 14 no room' "${by_pmi2[@]}" XIO_TIMEOUT_MS=1000 "$server" 2 refuse "$probe" who
gives 3 1 "^XIO_ERR_PEER: .* holds '' under xio-world-0 instead of a unique id" "${by_pmi2[@]}" XIO_TIMEOUT_MS=2000 "$server" 2 missing "$probe" who
gives 3 1 '^XIO_ERR_CONFIG: PMI_FD is not set, so no launcher offers PMI-2' "${by_pmi2[@]}" "$probe" who
gives 3 1 "^XIO_ERR_CONFIG: PMI_FD='77' is no socket of this process" "${by_pmi2[@]}" PMI_FD=77 "$probe" who
finish pmi2
