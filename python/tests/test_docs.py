# SPDX-License-Identifier: MIT
"""The example, and Python in README and docs/python.md, by two PEs."""
import re

import pytest

from conftest import SOURCE, start

PAGES = ["README.md", "docs/python.md"]
pytestmark = pytest.mark.skipif(not (SOURCE / PAGES[1]).exists(), reason="no pages beside the package")


@pytest.mark.parametrize("page", PAGES)
def test_page(page, tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", (SOURCE / page).read_text(), re.M | re.S)
    assert blocks
    for i, block in enumerate(blocks):
        program = tmp_path / f"{i}.py"
        program.write_text(block)
        found = start(2, program)
        assert found.returncode == 0, found.stdout


def test_example():
    found = start(3, SOURCE / "examples/python/linear_fit.py")
    assert found.returncode == 0 and found.stdout.count(", as its neighbour") == 3, found.stdout
    assert start(2, SOURCE / "examples/python/linear_fit.py", 10).returncode == 0


def test_example_of_jax():
    pytest.importorskip("jax")
    found = start(2, SOURCE / "examples/python/jax_allreduce.py")
    assert found.returncode == 0 and found.stdout.count(", as all others") == 2, found.stdout
