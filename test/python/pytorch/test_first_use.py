"""Tests kernels and functions whose first call in a process is in a function that torch.compile compiles. Before that
call, they have no signatures and no operators.

Each case runs in a fork of one process, which has imported mlafix and then torch.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

SCRIPT = """
import os, sys, traceback, warnings
import mlafix
from mlafix import ops
from mlafix.dsl import In, List, Out, f32, grid

@mlafix.kernel
def double(y: Out[f32, "n D"], x: In[f32, "n D"]):
    for t in grid("n"):
        y[t] = x[t] * 2.0

@mlafix.kernel(allow={"bounds"})
def total(parts: List[In[f32, "n D"], 2], y: Out[f32, "n D"]):
    for t in grid("n"):
        y[t] = parts[0][t] + parts[1][t]

warnings.filterwarnings("ignore", ".*multi-threaded", DeprecationWarning)  # of os.fork
assert "torch" not in sys.modules
import torch
import torch._dynamo, torch._functorch.aot_autograd  # which torch.compile would import in each fork

def a_kernel(x, _):
    y = torch.empty_like(x)
    double(y, x + 0)
    return y

def a_list_of_tensors(x, other):  # the first argument is no tensor
    y = torch.empty_like(x)
    total([x, other + 0], y)
    return y

def a_function(x, _):
    return ops.softmax(x + 0) * 2

def check(call, want):
    x, other = torch.randn(2, 3, 64)
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    for _ in range(2):
        assert torch.equal(compiled(x, other), want(x, other))

CASES = {a_kernel: lambda x, _: 2 * x, a_list_of_tensors: lambda x, other: x + other, a_function: a_function}
for call, want in CASES.items():
    child = os.fork()
    if not child:
        status = 1
        try:
            check(call, want)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    if os.waitpid(child, 0)[1]:
        sys.exit(f"{call.__name__}: see above")
"""


def test_first_call_is_in_a_compiled_function(tmp_path: Path) -> None:
    """The first call works in a compiled function: of a kernel, of a kernel that takes a list, and of a function of
    mlafix.ops."""
    (tmp_path / "script.py").write_text(SCRIPT)  # a kernel's source must be in a file
    done = subprocess.run([sys.executable, "-W", "error", str(tmp_path / "script.py")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
