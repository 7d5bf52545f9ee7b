# SPDX-License-Identifier: MIT
"""Programs of several PEs."""
import pytest

from conftest import HERE, start


def passed(n, cases, *words, seconds=240, **changed):
    found = start(n, HERE / "pes.py", cases, *words, seconds=seconds, **changed)
    done = [found.stdout.count(f"done with {case};") for case in cases.split(",")]
    assert found.returncode == 0 and done == [n] * len(done), found.stdout[-4000:]
    return found


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("cases", ["rma,host_calls,collectives,arrays,storage,mistakes,forked,closing", "dropped"])
def test_cases(cases, n):
    passed(n, cases)


@pytest.mark.parametrize("route", ["rdma", "sdma"])
def test_route(route):
    passed(2, "rma,host_calls", XIO_ROUTE=route)


def test_ids(tmp_path):
    passed(2, "ids", tmp_path / "id")


def test_one_raises():
    found = start(2, HERE / "pes.py", "one_raises", seconds=60)
    assert found.returncode != 0 and "on purpose" in found.stdout and "AssertionError" not in found.stdout, found.stdout


def test_times(capsys):
    found = passed(2, "times")
    with capsys.disabled():
        print("", *[line for line in found.stdout.splitlines() if "a call" in line], sep="\n")
