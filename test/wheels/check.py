"""What an installed wheel must do; scripts/test-wheels runs it in bare systems, with the Python that has the wheel.

    check.py runtime     with mlafix alone: no compiler, no torch, no ml_dtypes
    check.py compiler    with mlafix-compiler as well
    check.py together    beside torch and Triton, whose LLVMs are other ones
    check.py PAGE.md     the page's code, as it stands there, prints what the page says
"""

from __future__ import annotations

import doctest
import importlib.util
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import mlafix
from mlafix import library, ops
from mlafix.dsl import In, Out, f32, grid


@mlafix.kernel
def double(y: Out[f32, "n D"], x: In[f32, "n D"]):
    for t in grid("n"):
        y[t] = x[t] * 2.0


def merge(heads: int, dim: int) -> None:
    """A merge of two states whose weights are equal: the result is the mean."""
    n = 4
    lse = np.zeros((heads, n), np.float32)
    one, three = (np.full((n, heads, dim), x, np.float16) for x in (1, 3))
    out, out_lse = ops.merge_attn_states(one, lse, three, lse)
    assert (out == 2).all() and np.allclose(out_lse, np.log(2)), out


def call_double() -> None:
    y = np.empty((3, 8), np.float32)
    double(y, np.ones((3, 8), np.float32))
    assert (y == 2).all(), y


def check_runtime() -> None:
    absent = [name for name in ("torch", "ml_dtypes", "mlafix._compiler") if importlib.util.find_spec(name)]
    assert not absent, f"expected none of them to be installed, got {absent}"
    merge(16, 128)  # of the units in the wheel
    assert ops.is_prefilling(np.array([3, 8, 0]), np.array([8, 8, 4])).tolist() == [True, False, True]
    for call in (lambda: merge(3, 24), call_double):
        try:
            call()
        except mlafix.UnitError as error:
            assert "this installation has no compiler" in str(error), error
        else:
            raise AssertionError("expected a UnitError for what was not compiled ahead")


def check_compiler() -> None:
    merge(3, 24)
    call_double()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "double.mlafix"
        double.save(path, ["sm_90", "cpu"], D=8)
        assert mlafix.Unit.load(path)["double"].specializations[0][0] == {"D": "8"}
    assert ".entry" in double.ptx("sm_90", D=8)


def check_together() -> None:
    """Three LLVMs in one process: torch's, Triton's and ours, each used after the others were loaded."""
    import torch
    import triton
    from triton._C import libtriton

    call_double()
    context = libtriton.ir.context()
    libtriton.ir.load_dialects(context)
    x = torch.ones(2, 8)
    y = torch.empty(2, 8)
    double(y, x)
    compiled = torch.compile(lambda v: (v + 1).sum(), backend="eager")
    assert (y == 2).all() and compiled(x) == 32 and triton.__version__
    double.ptx("sm_90", D=16)


def check_page(page: Path) -> None:
    """A reader puts the page's code into one file and runs it."""
    blocks = {kind: re.findall(rf"^```{kind}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S) for kind in ("python", "text")}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.py"
        file.write_text("\n".join(blocks["python"]), encoding="utf-8")
        printed = subprocess.run([sys.executable, file], cwd=folder, check=True, capture_output=True, text=True).stdout
    want = "".join(blocks["text"])
    assert want and doctest.OutputChecker().check_output(want, printed, doctest.ELLIPSIS), printed


if __name__ == "__main__":
    checks = {"runtime": check_runtime, "compiler": check_compiler, "together": check_together}
    checks.get(sys.argv[1], lambda: check_page(Path(sys.argv[1])))()
    print(f"mlafix {mlafix.__version__}, Python {sys.version.split()[0]}: {sys.argv[1]}, {len(library.names())} kernels in the library")
