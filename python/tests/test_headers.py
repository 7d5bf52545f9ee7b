# SPDX-License-Identifier: MIT
"""The declarations of the package beside the headers: a C compiler sees both."""
import ctypes
import os
import re
import shlex
import shutil

import pytest

from conftest import SOURCE, run

from xio import _library as L
from xio._errors import Status

INCLUDE = SOURCE / "include"
compiler = shlex.split(os.environ.get("CC", "cc"))
pytestmark = pytest.mark.skipif(not INCLUDE.exists() or shutil.which(compiler[0]) is None,
                                reason="no headers beside the package, or no C compiler")


def build(tmp_path, text, prototypes=L.PROTOTYPES):
    source, program = tmp_path / "seen.c", tmp_path / "seen"
    source.write_text("#include <stdio.h>\n#include <stddef.h>\n#include <xio/host.h>\n#include <xio/memory.h>\n"
                      f"{prototypes}\nint main(void) {{\n{text}\nreturn 0;\n}}\n")
    found = run([*compiler, "-Werror", "-Wall", f"-I{INCLUDE}", str(source), "-o", str(program)])
    return found, program


def numbers(tmp_path, rows):
    found, program = build(tmp_path, "\n".join(f'printf("%lld\\n", (long long)({row}));' for row in rows))
    assert found.returncode == 0, found.stdout
    return [int(line) for line in run([str(program)]).stdout.split()]


def test_structs(tmp_path):
    rows, expected = [], []
    for struct in L.STRUCTS:
        name = f"xio_{struct.__name__}_t"
        rows.append(f"sizeof({name})")
        expected.append(ctypes.sizeof(struct))
        for field in struct._fields_:
            rows += [f"offsetof({name}, {field[0]})", f"sizeof((({name} *)0)->{field[0]})"]
            expected += [getattr(struct, field[0]).offset, getattr(struct, field[0]).size]
    assert list(zip(rows, numbers(tmp_path, rows))) == list(zip(rows, expected))


def test_constants(tmp_path):
    rows = [(f"{prefix}{name.upper()}", value) for prefix, names in L.ENUMS.items() for name, value in names.items()]
    rows += [(f"XIO_{s.name}", int(s)) for s in Status] + [("XIO_ABI_VERSION", L.ABI)]
    found = numbers(tmp_path, [row[0] for row in rows])
    assert list(zip([row[0] for row in rows], found)) == rows
    # All of them: a status that is new in the header is known here.
    text = (INCLUDE / "xio/status.h").read_text()
    assert len(re.findall(r"^  XIO_\w+ = ", text, re.M)) == len(Status)


def test_prototypes(tmp_path):
    """A declaration that differs from the header's is an error of the compiler."""
    found, _ = build(tmp_path, "")
    assert found.returncode == 0, found.stdout
    wrong = L.PROTOTYPES.replace("xio_ctx_t, void *, const void *, size_t, int);", "xio_ctx_t, void *, const void *, int, int);", 1)
    assert wrong != L.PROTOTYPES
    assert "conflicting types" in build(tmp_path, "", wrong)[0].stdout


def test_all_calls_on_streams():
    """Every call of these two headers is in the package."""
    for header in ("stream.h", "host.h"):
        calls = re.findall(r"^XIO_EXPORT xio_status_t (xio_\w+)\(", (INCLUDE / "xio" / header).read_text(), re.M)
        assert len(calls) > 8
        assert [c for c in calls if f" {c}(" not in L.PROTOTYPES] == []
