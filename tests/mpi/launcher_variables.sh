#!/bin/bash
# SPDX-License-Identifier: MIT
# What launchers say of a process by their variables, and the world that it then gets: alone only where it was started
# alone, or asks for it.
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${builddir:?}" "${MPIRUN=}" "${work=}"
probe=$builddir/tests/mpi/bootstrap_probe
make_work

# gets STATUS 'PATTERN' VARIABLE=VALUE... [-- SCENARIO], in an environment that has nothing else
gets() {
  local status=$1 pattern=$2 got scenario=who given=()
  shift 2
  while [ $# -gt 0 ]; do
    if [ "$1" = -- ]; then scenario=$2; break; fi
    given+=("$1")
    shift
  done
  timeout -k 5 60 env -i PATH="$PATH" XIO_MODULES="$builddir/.libs" HOME="$work" XIO_TIMEOUT_MS=20000 "${given[@]}" "$probe" "$scenario" \
    >"$work/out" 2>"$work/err" </dev/null
  got=$?
  if [ $got != "$status" ] || ! grep -qE -- "$pattern" "$work/out"; then
    fail "${given[*]}: status $got, expected $status; output, expected /$pattern/:" "$work/out" "$work/err"
  fi
}
alone() { gets 0 '^rank 0 of 1 by local$' "$@"; }
# refused 'LAUNCHER started N tasks (EVIDENCE)' VARIABLE=VALUE...: with every cure
refused() {
  local why=$1
  shift
  gets 3 "^XIO_ERR_CONFIG: $why( \\([A-Z0-9_]*=[0-9]*\\))?, and this one would be alone .*xiorun.*XIO_TCP_ROOT.*XIO_BOOTSTRAP=local" "$@"
}

# Nobody; and a job whose script is no task of srun's.
alone NOTHING=1
slurm=(SLURM_JOB_ID=5 SLURM_JOBID=5 SLURM_NTASKS=4 SLURM_NPROCS=4 SLURM_TASKS_PER_NODE=4 SLURM_JOB_NUM_NODES=1)
batch=("${slurm[@]}" SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_GTIDS=0 SLURM_TASK_PID=1)
alone "${slurm[@]}"
alone "${batch[@]}"

# Variables that a script inherited from a task that submitted it: the parent's title tells them apart.
# below 'TITLE' 'PATTERN'
# shellcheck disable=SC2016  # each shell expands its own
printf 'SLURM_TASK_PID=$$ "$1" who\n' >"$work/script"
below() {
  # shellcheck disable=SC2016
  timeout 60 env -i PATH="$PATH" XIO_MODULES="$builddir/.libs" "${batch[@]}" SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 \
    bash -c 'exec -a "$0" bash -c "bash \"\$0\" \"\$1\"; true" "$@"' "$1" "$work/script" "$probe" >"$work/out" 2>&1
  grep -q "$2" "$work/out" || fail "below $1: $(cat "$work/out")"
}
below 'slurmstepd: [17.batch]' '^rank 0 of 1 by local$'
below 'slurmstepd-wlm: [17.interactive]' '^rank 0 of 1 by local$'
below 'slurmstepd: [17.0]' 'Slurm started 2 tasks'
below 'bash: [17.batch]' 'Slurm started 2 tasks'

# A task of srun's, without PMI.
for rank in 0 1 3; do
  refused 'Slurm started 4 tasks \(SLURM_STEP_NUM_TASKS=4\)' "${batch[@]}" SLURM_STEP_ID=0 SLURM_STEPID=0 \
    SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=$rank
done
refused 'Slurm started 2 tasks' SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=2
refused 'Slurm started 4 tasks \(SLURM_NTASKS=4\)' "${batch[@]}" SLURM_STEP_ID=0
refused 'Slurm started at least 4 tasks \(SLURM_PROCID=3\)' SLURM_PROCID=3
alone "${batch[@]}" SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1
alone XIO_BOOTSTRAP=local "${batch[@]}" SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4

# Others, of which XIO takes no rank.
refused 'Flux started 2 tasks \(FLUX_JOB_SIZE=2\)' FLUX_JOB_SIZE=2 FLUX_TASK_RANK=0 FLUX_TASK_LOCAL_ID=0
refused 'PALS started at least 3 tasks \(PALS_LOCAL_SIZE=3\)' PALS_RANKID=1 PALS_LOCAL_RANKID=1 PALS_LOCAL_SIZE=3
refused 'PALS started at least 2 tasks \(PALS_RANKID=1\)' PALS_RANKID=1 PALS_LOCAL_SIZE=1
refused 'PALS started 6 tasks' PALS_RANKID=0 PALS_SIZE=6
refused 'jsrun started 4 tasks \(JSM_NAMESPACE_SIZE=4\)' JSM_NAMESPACE_RANK=1 JSM_NAMESPACE_SIZE=4
refused 'ALPS started at least 2 tasks \(ALPS_APP_PE=1\)' ALPS_APP_PE=1
# Open MPI reaches no server, and changes the rank on its way to a world of one.
refused 'a launcher that speaks PMIx started at least 2 tasks \(PMIX_RANK=1\)' PMIX_RANK=1 PMIX_NAMESPACE=job
refused 'MVAPICH started 2 tasks' MV2_COMM_WORLD_RANK=0 MV2_COMM_WORLD_SIZE=2
refused 'torchrun started 8 tasks \(WORLD_SIZE=8\)' RANK=0 LOCAL_RANK=0 WORLD_SIZE=8 LOCAL_WORLD_SIZE=4 MASTER_ADDR=a
refused 'torchrun started at least 4 tasks \(LOCAL_WORLD_SIZE=4\)' LOCAL_RANK=0 LOCAL_WORLD_SIZE=4
# With torchrun's place, too, the worlds go over TCP, and torchrun passes no key on.
torch=(MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2)
gets 3 '^XIO_ERR_CONFIG: the TCP bootstrap has no key; ' "${torch[@]}" RANK=0 WORLD_SIZE=2
gets 3 '^XIO_ERR_TIMEOUT: the world of 2 ranks at 127.0.0.1:29501 .* have the same MASTER_ADDR and MASTER_PORT' \
  "${torch[@]}" RANK=0 WORLD_SIZE=2 XIO_TCP_KEY=0123456789abcdef XIO_TIMEOUT_MS=300
alone "${torch[@]}" RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1
refused 'torchrun started 2 tasks' RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=x
# Those names mean nothing by themselves.
alone WORLD_SIZE=8
alone WORLD_SIZE=8 MASTER_ADDR=a
alone RANK=3
alone RANK=0 LOCAL_RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1
alone FLUX_JOB_SIZE=1 FLUX_TASK_RANK=0
alone FLUX_URI=local:///run/flux FLUX_JOB_SIZE=

# Empty is not set, and what is no number proves nothing.
for bad in '' x 2x -2 2.0 ' 2' 99999999999999999999; do
  alone FLUX_JOB_SIZE="$bad" PALS_LOCAL_SIZE="$bad" MV2_COMM_WORLD_SIZE="$bad" RANK=0 WORLD_SIZE="$bad" \
    SLURM_PROCID=0 SLURM_STEP_NUM_TASKS="$bad" SLURM_NTASKS=2
done
alone OMPI_COMM_WORLD_SIZE= PMI_RANK= PMI_SIZE= PMIX_RANK= XIO_RUN_PE= XIO_TCP_ROOT= XIO_TCP_RANK= XIO_TCP_SIZE=

# The nearest launcher counts: a task of srun's that starts one by something else. A variable that a task of srun's got
# from what was around srun does not.
nested=(SLURM_PROCID=1 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2)
alone "${nested[@]}" FLUX_JOB_SIZE=1 FLUX_TASK_RANK=0
# shellcheck disable=SC2016  # the number of that shell is the task's
timeout 60 env -i PATH="$PATH" XIO_MODULES="$builddir/.libs" "${nested[@]}" FLUX_JOB_SIZE=1 sh -c 'SLURM_TASK_PID=$$ exec "$0" who' "$probe" >"$work/out" 2>&1
grep -q 'Slurm started 2 tasks' "$work/out" || {
  fail "a task of srun's takes the word of what is farther away: $(cat "$work/out")"
}

# Over TCP, rank and size are the launcher's where they are not given.
# pair 'PATTERN OF RANK 1' VARIABLE-OF-RANK VARIABLE=VALUE...
pair() {
  local pattern=$1 rank=$2 root=127.0.0.1:$((20000 + RANDOM % 12000)) first
  shift 2
  env -i PATH="$PATH" XIO_MODULES="$builddir/.libs" XIO_TIMEOUT_MS=20000 XIO_TCP_ROOT=$root XIO_TCP_KEY=0123456789abcdef "$rank=0" "$@" "$probe" who \
    >"$work/first" 2>&1 &
  first=$!
  gets 0 "$pattern" XIO_TCP_ROOT=$root XIO_TCP_KEY=0123456789abcdef "$rank=1" "$@"
  wait $first || fail "rank 0 of $*" "$work/first"
}
pair '^rank 1 of 2 by tcp$' SLURM_PROCID SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_ID=0 SLURM_JOB_ID=5
pair '^rank 1 of 2 by tcp$' SLURM_PROCID SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_JOB_ID=5
pair '^rank 1 of 2 by tcp$' SLURM_PROCID SLURM_STEP_NUM_TASKS=4 XIO_TCP_SIZE=2
pair '^rank 1 of 2 by tcp$' RANK WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1
# torchrun's place, and its numbers where mpirun or srun has started torchrun on each node.
torch_pair() {
  local port=$((20000 + RANDOM % 12000))
  pair '^rank 1 of 2 by tcp$' RANK XIO_TCP_ROOT= WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR="$1" MASTER_PORT=$port "${@:2}"
}
torch_pair 127.0.0.1
torch_pair ::1
torch_pair localhost TORCHELASTIC_RUN_ID=none OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1
torch_pair localhost TORCHELASTIC_RUN_ID=5 PMI_RANK=0 PMI_SIZE=1 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1
pair '^rank 1 of 2 by tcp$' PMI_RANK PMI_SIZE=2
pair '^rank 1 of 2 by tcp$' FLUX_TASK_RANK FLUX_JOB_SIZE=2 XIO_BOOTSTRAP=tcp
tcp=(XIO_TCP_ROOT=127.0.0.1:4711 XIO_TCP_KEY=0123456789abcdef)
gets 3 '^XIO_ERR_CONFIG: XIO_TCP_SIZE is not set' "${tcp[@]}" "${batch[@]}"
gets 3 "^XIO_ERR_CONFIG: XIO_TCP_RANK='2' is not a whole number in 0..1" "${tcp[@]}" XIO_TCP_SIZE=2 SLURM_PROCID=2 \
  SLURM_STEP_NUM_TASKS=4
# A size of one that is written down is on purpose.
gets 0 '^rank 0 of 1 by tcp$' "${tcp[@]}" XIO_TCP_RANK=0 XIO_TCP_SIZE=1 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2

# Another MPI's mpiexec: XIO's own MPI is then a world of one by itself.
if has HAVE_MPI; then
  root=()
  if [ "$(id -u)" = 0 ]; then root=(OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1); fi
  refused '.* PMI started 2 tasks \(PMI_SIZE=2\)' "${root[@]}" PMI_RANK=1 PMI_SIZE=2 PMI_FD=77
  refused '.* PMI started 2 tasks \(PMI_SIZE=2\)' "${root[@]}" PMI_RANK=0 PMI_SIZE=2 -- who_with_mpi
  refused '.* PMI started 2 tasks \(PMI_SIZE=2\)' "${root[@]}" XIO_BOOTSTRAP=mpi PMI_RANK=0 PMI_SIZE=2
  gets 0 '^rank 0 of 1 by mpi$' "${root[@]}" PMI_RANK=0 PMI_SIZE=1
  gets 0 '^rank 0 of 1 by mpi$' "${root[@]}" NOTHING=1 -- who_with_mpi
  # Slurm's PMI-2, which Open MPI may not know: it would end the process.
  if "$MPIRUN" --version 2>/dev/null | grep -q 'Open MPI'; then
    refused '.* PMI started 2 tasks' SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_STEPID=0 SLURM_STEP_NUM_TASKS=2 SLURM_NODELIST=a \
      SLURM_JOB_ID=3 SLURM_JOBID=3 PMI_RANK=0 PMI_SIZE=2 PMI_FD=77
  fi
fi

finish launcher_variables
