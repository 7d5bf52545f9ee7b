#!/bin/bash
# SPDX-License-Identifier: MIT
# Worlds below real launchers that are not XIO's: Slurm's srun, sbatch and salloc, and Hydra's mpiexec of MPICH. Slurm is
# a controller and a node of this test's own, on the loopback interface, without munge; that wants root. Programs that lie
# elsewhere than in PATH, as after `dpkg -x` of Debian's packages slurmctld, slurmd, slurm-client,
# slurm-wlm-basic-plugins, mpich and libslurm38:
#   XIO_TEST_LAUNCHERS=FOLDER XIO_TEST_BUILDDIR=$PWD/build tests/mpi/slurm_hydra.sh
# shellcheck disable=SC2016,SC2317  # functions that end and others call
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${builddir:?}" "${ran:?}" "${MPIRUN=}"
probe=$builddir/tests/mpi/bootstrap_probe
work=$(mktemp -d) || exit 1
chmod 755 "$work"
daemons=()
end() {
  [ ${#daemons[@]} = 0 ] || kill "${daemons[@]}" 2>/dev/null
  wait
  rm -rf "$work"
}
trap end EXIT

root=${XIO_TEST_LAUNCHERS-} hydra=${XIO_TEST_HYDRA-}
unset "${!SLURM_@}" "${!PMI_@}" "${!PMIX_@}" "${!OMPI_@}" "${!XIO_@}"
export XIO_MODULES=$builddir/.libs
libraries=$root/usr/lib/x86_64-linux-gnu
if [ "$(id -u)" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
# Of the launchers alone: what they start shall have the system's libraries.
below() { if [ -n "$root" ]; then LD_LIBRARY_PATH=$libraries/slurm-wlm:$libraries "$@"; else "$@"; fi; }
find_one() {
  local name
  for name; do
    PATH=${root:+$root/usr/bin:$root/usr/sbin:}$PATH:/usr/sbin type -P "$name" && return
  done
}

alone='^rank 0 of 1 by '
pair='^rank [01] of 2 by '
refused='^XIO_ERR_CONFIG: .* started 2 tasks .* alone in a world of one PE'
tcp=(env XIO_TCP_ROOT=127.0.0.1:$((20000 + RANDOM % 12000)) XIO_TCP_KEY=0123456789abcdef)

start_slurm() {
  local host plugins
  host=$(hostname -s)
  plugins=$(dirname "$(find "$libraries/slurm-wlm" /usr/lib/x86_64-linux-gnu/slurm-wlm /usr/lib*/slurm -name auth_none.so \
    -print -quit 2>/dev/null)")
  mkdir "$work/state" "$work/spool"
  cat >"$work/slurm.conf" <<-END
	ClusterName=xio
	SlurmctldHost=$host(127.0.0.1)
	SlurmUser=root
	AuthType=auth/none
	CredType=cred/none
	PluginDir=$plugins
	StateSaveLocation=$work/state
	SlurmdSpoolDir=$work/spool
	SlurmctldPidFile=$work/slurmctld.pid
	SlurmdPidFile=$work/slurmd.pid
	SlurmctldPort=$((32000 + RANDOM % 300))
	SlurmdPort=$((32300 + RANDOM % 300))
	ProctrackType=proctrack/pgid
	TaskPlugin=task/none
	SelectType=select/linear
	JobAcctGatherType=jobacct_gather/none
	MpiDefault=none
	NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc)
	PartitionName=p Nodes=$host Default=YES OverSubscribe=FORCE:8
	END
  export SLURM_CONF=$work/slurm.conf
  below exec "$slurmctld" -D >"$work/slurmctld.log" 2>&1 &
  daemons+=($!)
  below exec "$slurmd" -D -d "$slurmstepd" >"$work/slurmd.log" 2>&1 &
  daemons+=($!)
  for _ in $(seq 100); do
    below "$sinfo" -h -o %T 2>/dev/null | grep -q idle && return
    sleep 0.2
  done
  echo 'FAIL: Slurm does not start:'
  tail -n 20 "$work/slurmctld.log" "$work/slurmd.log"
  exit 1
}

slurmctld=$(find_one slurmctld slurmctld-wlm) slurmd=$(find_one slurmd slurmd-wlm)
slurmstepd=$(find_one slurmstepd slurmstepd-wlm) sinfo=$(find_one sinfo) srun=$(find_one srun)
sbatch=$(find_one sbatch) salloc=$(find_one salloc)
if [ -z "$slurmctld" ] || [ -z "$slurmd" ] || [ -z "$slurmstepd" ] || [ -z "$srun" ]; then
  echo 'not run: Slurm (slurmctld, slurmd, slurmstepd, srun) is not there'
elif [ "$(id -u)" != 0 ]; then
  echo 'not run: a Slurm of its own wants root'
else
  start_slurm
  export -f below
  export root libraries
  run() { below "$srun" -O "$@"; }
  export -f run
  export srun
  slurm() { gives "${@:1:3}" bash -c 'run "$@"' run "${@:4}"; }
  clean=(env -u LD_LIBRARY_PATH)
  slurm 3 2 "$refused" -n 2 "${clean[@]}" "$probe" who
  slurm 0 2 "$refused" -n 2 "${clean[@]}" sh -c "$probe who; true"
  slurm 0 2 "$alone" -n 2 "${clean[@]}" XIO_BOOTSTRAP=local "$probe" who
  slurm 0 1 "$alone" -n 1 "${clean[@]}" "$probe" who
  if proves; then
    slurm 0 2 "${pair}tcp" --mpi=pmi2 -n 2 "${clean[@]}" "$probe" who
    slurm 0 2 "${pair}tcp" --mpi=pmi2 -n 2 "${clean[@]}" XIO_BOOTSTRAP=pmi2 "$probe" who
  elif has HAVE_MPI; then
    slurm 3 2 "$refused" --mpi=pmi2 -n 2 "${clean[@]}" "$probe" who
  fi
  if has HAVE_MPI && below "$srun" --mpi=list 2>&1 | grep -qw pmix; then
    slurm 0 2 "${pair}mpi" --mpi=pmix -n 2 "${clean[@]}" "$probe" who
  fi
  if proves; then
    slurm 0 2 "${pair}tcp" -n 2 "${clean[@]}" "${tcp[@]}" "$probe" who
    slurm 0 2 "${pair}tcp" --mpi=pmi2 -n 2 "${clean[@]}" "${tcp[@]}" "$probe" who
  fi
  # A job for two tasks whose script starts one program by itself.
  printf '#!/bin/sh\nunset LD_LIBRARY_PATH\n%s who\n' "$probe" >"$work/script"
  gives 0 1 'Submitted' bash -c 'below "$@"' below "$sbatch" -W -O -n 2 -o "$work/job" "$work/script"
  gives 0 1 "$alone" cat "$work/job"
  # The same, submitted by a task, whose variables it inherits.
  cat >"$work/submit" <<-END
	#!/bin/bash
	[ \$SLURM_PROCID = 0 ] || exit 0
	export LD_LIBRARY_PATH=$libraries/slurm-wlm:$libraries
	exec "$sbatch" -W -O -n 2 -o "$work/job2" "$work/script"
	END
  slurm 0 1 'Submitted' -n 2 bash "$work/submit"
  gives 0 1 "$alone" cat "$work/job2"
  gives 0 1 "$alone" bash -c 'below "$@"' below "$salloc" -O -n 2 "${clean[@]}" "$probe" who
fi

hydra=${hydra:-$(find_one mpiexec.hydra)}
if [ -z "$hydra" ]; then
  echo "not run: Hydra's mpiexec is not there"
elif can_mpirun; then
  # An Open MPI that has not heard of it; what an MPICH makes of it is a world of two.
  want=$refused status=3
  if ! "$MPIRUN" --version 2>/dev/null | grep -q 'Open MPI'; then want=$pair status=0; fi
  export -f below
  export root libraries
  mpiexec() { gives "${@:1:3}" bash -c 'below "$@"' below "$hydra" "${@:4}"; }
  mpiexec $status 2 "$want" -n 2 env -u LD_LIBRARY_PATH "$probe" who
  mpiexec $status 2 "$want" -n 2 env -u LD_LIBRARY_PATH "$probe" who_with_mpi
  mpiexec 0 1 "$alone" -n 1 env -u LD_LIBRARY_PATH "$probe" who
  mpiexec 0 2 "$alone" -n 2 env -u LD_LIBRARY_PATH XIO_BOOTSTRAP=local "$probe" who
  if proves; then mpiexec 0 2 "${pair}tcp" -n 2 env -u LD_LIBRARY_PATH XIO_BOOTSTRAP=pmi2 "$probe" who; fi
  if proves; then mpiexec 0 2 "${pair}tcp" -n 2 env -u LD_LIBRARY_PATH "${tcp[@]}" "$probe" who; fi
fi

[ "$ran" = 0 ] && skip 'no launcher of others is here'
finish "slurm_hydra, $ran runs"
