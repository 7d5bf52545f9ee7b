#!/bin/bash
# SPDX-License-Identifier: MIT
# script.sh FILE: a script of tests/, when it is its turn. One that XIO_TEST_ON_ONE_CORE names runs beside others of its kind and
# beside tests of one file (source.sh); any other starts several PEs, and runs alone, also under make -j.
set -u
turn=-x
case " ${XIO_TEST_ON_ONE_CORE-} " in *" tests/${1##*tests/} "*) turn=-s ;; esac
# -o: none of its children holds the turn.
exec flock -o $turn "$XIO_TEST_TURNS" timeout -k 10 "$XIO_TEST_LIMIT" bash "$1"
