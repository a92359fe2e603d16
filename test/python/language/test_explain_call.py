"""Tests kernel.explain_call and MLAFIX_LOG=debug, which list a call's code versions and say why it uses one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mlafix
from mlafix.dsl import DType, In, Out, grid

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

T = DType("T")


def _float8() -> np.dtype:
    return np.dtype(pytest.importorskip("ml_dtypes").float8_e4m3fn)


@mlafix.kernel
def double(y: Out[T, "n H D"], x: In[T, "n H D"]):
    for t, h in grid("n", "H"):
        y[t, h] = x[t, h] * 2.0


def test_a_call_on_a_cpu_has_versions_rows_and_bytes() -> None:
    x = np.ones((5, 2, 64), np.float32)
    y = np.zeros_like(x)
    found = double.explain_call(y, x=x)
    assert not y.any(), "nothing is launched"
    assert (found.kernel, found.bindings) == ("double", {"D": "64", "H": "2", "T": "f32"})
    assert found.target.startswith("x86-64")
    assert (found.rows, found.blocks, found.threads) == (10, 0, 0)
    assert (found.bytes_read, found.bytes_written) == (x.nbytes, y.nbytes)
    assert found.least_us is None
    assert [version.chosen for version in found.versions].count(True) == 1
    chosen = next(version for version in found.versions if version.chosen)
    assert chosen.refused == "" and all(version.refused for version in found.versions[: found.versions.index(chosen)])


def test_a_wrong_call_raises_as_a_call_does() -> None:
    with pytest.raises(mlafix.ArgumentError, match='expected size'):
        double.explain_call(np.zeros((4, 2, 64), np.float32), np.ones((5, 2, 64), np.float32))
    with pytest.raises(mlafix.ArgumentError, match='expected an argument "x", got none'):
        double.explain_call(np.ones((5, 2, 64), np.float32))


def test_the_log_says_the_same_of_each_new_call(tmp_path: Path) -> None:
    code = """
import numpy, mlafix
from test_explain_call import double
x = numpy.ones((5, 2, 64), numpy.float32)
double(numpy.zeros_like(x), x)
"""
    here = Path(__file__).resolve().parent
    environment = {**os.environ, "MLAFIX_LOG": "debug", "PYTHONPATH": f"{here}:{os.environ.get('PYTHONPATH', '')}", "MLAFIX_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    taken = [line for line in done.stderr.splitlines() if "takes the call" in line]
    assert len(taken) == 1 and taken[0].startswith('mlafix: kernel "double" [D=64,H=2,T=f32]: double_'), done.stderr
    assert taken[0].endswith("10 rows, 2560 bytes read, 2560 written")
    refused = [line for line in done.stderr.splitlines() if "does not take the call: expected " in line]
    x = np.ones((5, 2, 64), np.float32)
    versions = double.explain_call(np.zeros_like(x), x).versions
    assert len(refused) == [version.chosen for version in versions].index(True)


def test_the_text_lists_versions_grid_bytes_and_time() -> None:
    info = {
        "kernel": "f", "bindings": "D=128", "target": "sm_90", "variant": 1, "rows": 4096, "grid": 512, "block": 128, "bytes_read": 2_000_000,
        "bytes_written": 1_000_000, "bandwidth": 3_000_000_000_000,
        "versions": [("f_dense", 'expected stride 2048 in dim 0 of "x", got 4096'), ("f_fast", ""), ("f_any", "")],
    }  # fmt: skip
    assert str(mlafix.CallExplanation.of(info)).splitlines() == [
        'kernel "f" [D=128] on sm_90',
        '  f_dense  expected stride 2048 in dim 0 of "x", got 4096',
        "  f_fast   chosen",
        "  f_any    takes the call, and comes later",
        "  4,096 rows in 512 blocks of 128 threads",
        "  2,000,000 bytes read, 1,000,000 written; the memory moves them in 1.00 us, at 3,000 GB/s",
    ]


def test_the_report_prints_as_a_table() -> None:
    report = double.report(H=2, D=64, T="f32")
    lines = str(report).splitlines()
    assert lines[:2] == ['kernel "double"', "argument  question      answer"]
    assert "y         coverage      proved" in lines
    assert report["args"][0]["name"] == "y", "it stays a dict"


def test_a_bound_call_of_an_operation_is_explained() -> None:
    x = np.ones((5, 64), np.float32)
    found = mlafix.ops.softmax.bind(x, out=np.empty_like(x)).explain()
    assert found.kernel == "softmax" and found.rows == 5 and found.bytes_read == x.nbytes
    scales, halves = np.zeros((128, 4), np.uint8), np.ones((3, 2, 64), np.float32)
    out_format = mlafix.ops.MxFp8(scales, tiles="128x4")  # a second launch clears the padding of the scales
    lse = np.zeros((2, 3), np.float32)
    out = np.empty((3, 2, 64), _float8())
    bound = mlafix.ops.merge_attn_states.bind(halves, lse, halves, lse, out=out, return_lse=False, out_format=out_format)
    assert bound.explain().rows == 6
