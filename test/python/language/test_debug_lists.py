"""Tests watched launches of kernels that take a list of tensors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mlafix
from mlafix.dsl import In, InOut, List, Out, f4e2m1, f32, grid, i32, identity, load_state, merge, store_state

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

LINES = Path(__file__).read_text(encoding="utf-8").splitlines()


@mlafix.kernel(allow={"bounds"})
def gathered(out: Out[f32, "n D"], parts: List[In[f32, "m D"], 5], which: In[i32, "n"], row: List[In[i32, "n"], 2]):
    for t in grid("n"):
        out[t] = parts[which[t]][row[len(row) - 1][t]]


@mlafix.kernel
def merged(out: Out[f32, "n D"], parts: List[In[f32, "n D"], 8, "k"], lses: List[In[f32, "n"], 8, "k"]):
    for t in grid("n"):
        m = identity("D")
        for i in range(len(parts)):
            print(i, lses[i][t])
            m = merge(m, load_state(parts[i][t], lses[i][t]))
        store_state(m, out[t])


@mlafix.kernel(allow={"races", "bounds"})
def scattered(out: InOut[f32, "m"], parts: List[In[f32, "n"], 3], slots: List[In[i32, "n"], 2]):
    for t in grid("n"):
        if parts[len(parts) - 1][t] > 0.0:
            out[slots[0][t]] = parts[0][t]


@mlafix.kernel(allow={"bounds"})
def unpacked(out: Out[f32, "n D"], parts: List[In[f4e2m1, "m D"], 3], which: In[i32, "n"]):
    for t in grid("n"):
        out[t] = parts[which[t]][t] * 1.0


def only(report):
    assert len(report.faults) == 1, report
    return report.faults[0]


def lists(*shapes):
    return [np.ones(shape, np.float32) for shape in shapes]


def test_an_access_beyond_the_list_and_beyond_a_tensor():
    """In the `element` of a fault, the index into the list comes first. Indices may also be read from a list."""
    out, parts, rows = np.zeros((3, 8), np.float32), lists(*[(2, 8)] * 3), [np.int32([9, 9, 9]), np.int32([0, 1, 1])]
    fault = only(gathered.debug(out, parts, np.int32([0, 3, 2]), tuple(rows)))
    assert (fault.question, fault.argument, fault.element, fault.row) == ("bounds", "parts", (3, 1), (1,))
    assert LINES[fault.line - 1][fault.column - 1 :].startswith("parts[which[t]]")
    assert str(fault).endswith(": parts[3, 1]: row [1] accesses it, which is out of bounds")
    assert gathered.debug(out, parts, np.int32([0, 1, 2]), rows).faults == ()
    fault = only(gathered.debug(out, parts, np.int32([0, 1, 2]), rows[:1]))
    assert fault.element == (0, 9) and (out == 0).all()  # no argument is written


def test_elements_decide_what_is_written():
    out, parts, slots = np.zeros(3, np.float32), [np.float32([1, 1, 1]), np.float32([1, -1, 1])], [np.int32([2, 2, 0])]
    assert scattered.debug(out, parts, slots).faults == ()
    fault = only(scattered.debug(out, parts[:1], slots))
    assert (fault.question, fault.argument, fault.element, fault.row) == ("one writer", "out", (2,), (1,))


def test_prints(capsys):
    report = merged.debug(np.zeros((2, 8), np.float32), lists((2, 8), (2, 8)), [np.float32([0, 1]), np.float32([2, -np.inf])])
    assert [text.text for text in report.printed] == ["0 0", "1 2", "0 1", "1 -inf"] and report.faults == ()
    capsys.readouterr()


def test_elements_of_half_a_byte():
    out, parts = np.zeros((2, 8), np.float32), [np.zeros((2, 4), np.uint8)] * 3
    assert unpacked.debug(out, parts, np.int32([0, 2])).faults == ()
    assert only(unpacked.debug(out, parts, np.int32([0, -1]))).element == (-1, 1)


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    out, parts, slots = torch.zeros(3), [torch.ones(3), torch.tensor([1.0, -1.0, 1.0])], [torch.tensor([2, 2, 0], dtype=torch.int32)]
    assert scattered.debug(out, parts, slots).faults == ()
    assert only(scattered.debug(out, parts[:1], slots)).element == (2,) and (out == 0).all()


def test_wrong_lists_are_refused():
    out = np.zeros((2, 8), np.float32)
    cases = [
        ((out, lists((2,))), 'argument "parts": expected a list of tensors, got ndarray'),
        (([], lists((2,))), 'argument "parts": expected 1 to 8 tensors, got 0'),
        ((lists(*[(2, 8)] * 9), lists(*[(2,)] * 9)), 'argument "parts": expected 1 to 8 tensors, got 9'),
        (([None], lists((2,))), 'argument "parts": expected a numpy array or a torch tensor'),
        ((lists((2, 8), (3, 8)), lists((2,), (2,))), 'argument "parts": expected sizes .2, 8., those of tensor 0, got .3, 8. for tensor 1'),
    ]
    for (parts, lses), message in cases:
        with pytest.raises(mlafix.ArgumentError, match=message):
            merged.debug(out, parts, lses)


def test_watched_by_the_environment():
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import numpy as np, test_debug_lists as t\n"
        "t.scattered(np.zeros(2, np.float32), [np.float32([1])], [np.int32([2])])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={**os.environ, "MLAFIX_DEBUG": "1"}
    )
    assert 'DebugWarning: kernel "scattered":' in done.stderr and "out[2]: row [0] accesses it, which is out of bounds" in done.stderr
