#!/bin/bash
# SPDX-License-Identifier: MIT
# script.sh FILE: a script or program of tests/, when it is its turn. One that XIO_TEST_ON_ONE_CORE names runs beside others of its kind
# and beside tests of one file (source.sh), one of XIO_TEST_WAITING beside these; any other keeps several cores busy, and runs alone.
set -u
turn=-x
case " ${XIO_TEST_ON_ONE_CORE-} " in *" tests/${1##*tests/} "*) turn=-s ;; esac
case " ${XIO_TEST_WAITING-} " in *" tests/${1##*tests/} "*) turn=-w ;; esac
case $1 in *.sh) set -- bash "$1" ;; esac
exec bash "${0%/*}/turn.sh" $turn "$@"
