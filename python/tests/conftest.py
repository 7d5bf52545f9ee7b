# SPDX-License-Identifier: MIT
"""XIO_LIBRARY names the libxio under test, XIO_TEST_START what starts PEs: `xiorun`, or a script with its options."""
import os
import pathlib
import shlex
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parent
SOURCE = PACKAGE.parent  # the tree, for its headers
sys.path.insert(0, str(PACKAGE))


def environment(**changed):
    return {**os.environ, "PYTHONPATH": f"{PACKAGE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}", **changed}


def run(command, seconds=120, **changed):
    return subprocess.run(command, env=environment(**changed), timeout=seconds, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)


def start(n, *words, seconds=120, **changed):
    """Runs a program of Python by n PEs."""
    launcher = shlex.split(os.environ.get("XIO_TEST_START", "xiorun"))
    return run([*launcher, "-n", str(n), "timeout", "-k", "5", str(seconds - 10), sys.executable, *map(str, words)],
               seconds, **changed)
