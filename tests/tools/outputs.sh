#!/bin/bash
# SPDX-License-Identifier: MIT
# Programs that write: files come whole or not at all, and touch nothing but what they were to replace; output that cannot
# be written is a failure. Of relay, xio-tester --dump-pattern and xio-perf --plot.
# shellcheck source=tests/tools/said.sh
. "${0%/*}/said.sh" || exit 1
if ! grep -q '^#define XIO_ENABLE_MODEL 1' "$builddir/config.h"; then skip 'the programs are tried on software devices'; fi
unset "${!XIO_@}" 2>/dev/null
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work" || exit 1
export TMPDIR=$work/tmp
mkdir tmp

# All files of the folder, hidden ones too.
names() { find . -mindepth 1 | sort; }
# write_as PROGRAM FILE: it writes the content of `in` there. Fills $out and $got.
write_as() {
  if [ "$1" = relay ]; then
    out=$(timeout -k 5 100 "$start" -n 2 "$builddir/examples/relay/relay" --in in --out "$2" 2>&1)
  else
    out=$(timeout -k 5 100 "$builddir/xio-tester" --dump-pattern "$2" --dump-pattern-size 300001 --i-know 2>&1)
  fi
  got=$?
}
# wrote PROGRAM FILE: and it is there.
wrote() {
  checks=$((checks + 1))
  write_as "$1" "$2"
  if [ $got != 0 ] || ! cmp in "$2"; then wrong "$1: $2 was not written (status $got)"; fi
}
# refused WORDS PROGRAM FILE: with a sentence, and no file has come or gone.
refused() {
  local before
  checks=$((checks + 1))
  before=$(names)
  write_as "$2" "$3"
  if [ $got = 0 ] || ! grep -qE -- "$1" <<<"$out"; then wrong "$2 to $3: status $got, and '$1' was to be said"; fi
  [ "$(names)" = "$before" ] || wrong "$2 to $3: files have come or gone: $(names | tr '\n' ' ')"
}

"$builddir/xio-tester" --dump-pattern in --dump-pattern-size 300001 || wrong 'no pattern'
is 'size of the pattern' "$(stat -c %s in)" 300001
umask 027
for program in relay dump; do
  wrote $program new
  is "$program: mode of a new file" "$(stat -c %a new)" 640
  # What only looks like a file of its own.
  echo precious >new.part
  wrote $program new
  is "$program: new.part" "$(cat new.part)" precious
  # An old file: mode and links stay.
  install -m 600 /dev/null old
  wrote $program old
  is "$program: mode of an old file" "$(stat -c %a old)" 600
  chmod 751 old
  wrote $program old
  is "$program: mode of an old file" "$(stat -c %a old)" 751
  if [ "$(id -u)" = 0 ]; then
    chown 1234:4321 old
    wrote $program old
    is "$program: owner of an old file" "$(stat -c '%u:%g %a' old)" '1234:4321 751'
  fi
  mkdir -p below
  echo x >below/target
  ln -sf below/target link
  ln -sf link link2
  wrote $program link2
  is "$program: link" "$(readlink link2) $(readlink link)" 'link below/target'
  is "$program: target of the link" "$(cmp in below/target && stat -c %F below/target)" 'regular file'
  for name in 'q?block=512' 'a,file:b' 'with space' 'size?'; do wrote $program "$name"; done
  # What is not to be replaced.
  ln -sf nowhere dangling
  refused 'link to what is not there' $program dangling
  refused 'is a folder' $program below
  refused 'is a folder|name of a folder|name of no file' $program below/
  refused 'is a folder|name of a folder|name of no file' $program none/
  refused 'No such file' $program none/x
  refused 'Not a directory' $program old/x
  is "$program: files left in the folder of temporary ones" "$(ls -A tmp)" ''
  rm -rf below link link2 dangling old new new.part 'q?block=512' 'a,file:b' 'with space' 'size?'
done

# Devices and pipes: written as what they are, or refused before anything is moved. Devices of its own for root, who could
# replace the machine's.
mkfifo fifo
refused 'device, pipe or socket' relay fifo
null=/dev/null
if [ "$(id -u)" = 0 ]; then
  null=$work/null
  mknod "$null" c 1 3 || null=''
fi
if [ -n "$null" ] && : >"$null"; then
  refused 'device, pipe or socket' relay "$null"
  write_as dump "$null"
  is 'dump into a device' "$got $(stat -c %F "$null")" '0 character special file'
fi
cat fifo >got_it &
write_as dump fifo
wait
is 'dump into a pipe' "$got $(cmp in got_it && stat -c %F fifo)" '0 fifo'
if [ "$(id -u)" != 0 ]; then
  write_as dump /dev/full
  is 'dump into /dev/full' "$got $(stat -c %F /dev/full)" '1 character special file'
fi
is 'dump through a pipe' "$("$builddir/xio-tester" --dump-pattern /proc/self/fd/1 --dump-pattern-size 300001 | cmp - in && echo same)" same
# A file that has lost its name cannot be replaced.
exec 9>gone
rm -f gone got_it
refused 'has no name any more' dump /dev/fd/9
exec 9>&-

# Two at once: each writes a whole file.
for round in 1 2 3; do
  for i in 1 2; do "$builddir/xio-tester" --dump-pattern both --dump-pattern-size 4M --dump-pattern-seed $i & done
  wait
  checks=$((checks + 1))
  "$builddir/xio-tester" --dump-pattern one --dump-pattern-size 4M --dump-pattern-seed 1
  "$builddir/xio-tester" --dump-pattern two --dump-pattern-size 4M --dump-pattern-seed 2
  cmp -s both one || cmp -s both two || wrong "two writers left a mixture in round $round"
  rm -f both one two
done

# Inputs whose size the system does not know.
relay_in() {
  checks=$((checks + 1))
  out=$(timeout -k 5 100 "$start" -n 2 "$builddir/examples/relay/relay" --in "$1" --out copy 2>&1) || wrong "relay --in $1"
}
relay_in /proc/version
cmp /proc/version copy || wrong '/proc/version was not relayed whole'
relay_in /sys/kernel/mm/transparent_hugepage/enabled
cmp /sys/kernel/mm/transparent_hugepage/enabled copy || wrong 'a file of /sys was not relayed as it is'
relay_in /dev/null
is '/dev/null' "$(stat -c %s copy)" 0
cat in >fifo &
relay_in fifo
wait
cmp in copy || wrong 'a pipe was not relayed whole'
for name in 'q?block=512' 'a,file:b'; do
  cp in "$name"
  rm -f copy
  relay_in "$name"
  cmp in copy || wrong "$name was not relayed"
  rm -f "$name"
done
refused_in() {
  checks=$((checks + 1))
  rm -f copy
  out=$(timeout -k 5 100 "$start" -n 2 "$builddir/examples/relay/relay" --in "$2" --out copy 2>&1) && wrong "relay --in $2"
  says "$1"
  [ ! -e copy ] || wrong "relay --in $2 made a file"
}
refused_in 'never ends' /dev/zero
refused_in 'is a folder' "$work/tmp"
refused_in 'No such file' none

# Signals leave nothing behind.
truncate -s 2G big
before=$(names)
for signal in TERM INT HUP KILL; do
  # Its own group and default signals, which a shell's background jobs do not have.
  setsid "$builddir/xiorun" -n 2 "$builddir/examples/relay/relay" --in big --out interrupted >/dev/null 2>&1 &
  sleep 0.6
  kill -$signal $!
  wait $! 2>/dev/null
  sleep 0.2
  is "files after SIG$signal" "$(names)" "$before"
done
timeout -k 5 -s TERM 0.5 "$builddir/xio-tester" --dump-pattern interrupted --dump-pattern-size 100G >/dev/null 2>&1
is 'files after a dump was ended' "$(names)" "$before"
if has HAVE_JSON; then
  timeout -k 5 -s KILL 0.7 "$builddir/xio-perf" nvme_read -e 1M -n 1000000 >/dev/null 2>&1
  is 'files after xio-perf was killed' "$(ls -A tmp)" ''
fi

# The same where a file cannot be without a name, as on NFS.
cat >shim.c <<'EOF'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
static int opened(const char* as, const char* path, int flags, mode_t mode) {
  if ((flags & O_TMPFILE) == O_TMPFILE) return errno = EOPNOTSUPP, -1;
  return ((int (*)(const char*, int, ...))dlsym(RTLD_NEXT, as))(path, flags, mode);
}
int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  return opened("open", path, flags, va_arg(more, mode_t));
}
int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  return opened("open64", path, flags, va_arg(more, mode_t));
}
EOF
if [ "$sanitizer" = no ] && ${CC:?} -shared -fPIC -o shim.so shim.c -ldl 2>/dev/null; then
  export LD_PRELOAD=$work/shim.so
  for program in relay dump; do
    install -m 600 /dev/null old
    ln -sf old link
    wrote $program link
    is "$program without O_TMPFILE: mode and link" "$(stat -c %a old) $(readlink link)" '600 old'
    wrote $program new
    is "$program without O_TMPFILE: mode of a new file" "$(stat -c %a new)" 640
    rm -f old link new
  done
  before=$(names)
  for signal in TERM INT HUP; do
    setsid "$builddir/xiorun" -n 2 "$builddir/examples/relay/relay" --in big --out interrupted >/dev/null 2>&1 &
    sleep 0.6
    kill -$signal $!
    wait $! 2>/dev/null
    is "files after SIG$signal without O_TMPFILE" "$(names)" "$before"
    timeout -k 5 -s $signal 0.5 "$builddir/xio-tester" --dump-pattern interrupted --dump-pattern-size 100G >/dev/null 2>&1
    is "files after a dump was ended without O_TMPFILE" "$(names)" "$before"
  done
  unset LD_PRELOAD
fi
rm -f big

# Standard output that cannot be written.
unwritten() {
  local status
  checks=$((checks + 1))
  out=$(timeout -k 5 60 "$@" 2>&1 >/dev/full)
  status=$?
  [ $status != 0 ] || wrong "status 0 with a full standard output: $*"
  out=$(timeout -k 5 60 "$@" 2>&1 >&-)
  status=$?
  [ $status != 0 ] || wrong "status 0 with a closed standard output: $*"
}
tools="xiorun xio-tester"
if has HAVE_JSON; then tools="$tools xio-info xio-perf"; fi
for tool in $tools; do
  unwritten "$builddir/$tool" --help
  unwritten "$builddir/$tool" --version
done
unwritten "$builddir/xio-tester" --list-endpoints
unwritten "$builddir/xio-tester" test-ep
unwritten "$builddir/xiorun" -n 1 --tag-output echo words
if has HAVE_JSON; then
  unwritten "$builddir/xio-info" --env
  unwritten "$builddir/xio-info" --env --json
  for format in table csv json; do unwritten "$builddir/xio-perf" put_lat -e 8 -n 10 --format $format; done
fi
unwritten "$builddir/examples/hello_put"
unwritten "$builddir/examples/sdma_p2p" 8
unwritten "$builddir/examples/sdma_allgather" 8
unwritten "$start" -n 2 "$builddir/examples/relay/relay" --in in --out copy
cmp in copy || wrong 'what relay printed went into a file'

finish
