"""Kernels with a list of tensors as an argument. A call may pass any number of tensors up to the list's bound."""

from __future__ import annotations

from pathlib import Path

import contract
import numpy as np
import pytest
from devices import Device
from numerics import BF16, F32
from sources import load, underlined

from mlafix.errors import ArgumentError, CompileError

TEXT = """
T = DType("T", default=f32)


@kernel
def merged(out: Out[T, "n H D"], out_lse: Out[f32, "n H"], parts: List[In[T, "n H D"], 8, "k"], lses: List[In[f32, "n H"], 8, "k"]):
    for t, h in grid("n", "H"):
        m = identity("D")
        for i in range(len(parts)):
            m = merge(m, load_state(parts[i][t, h], lses[i][t, h]))
        store_state(m, out[t, h], out_lse[t, h])


@kernel(allow={"bounds"})
def gathered(out: Out[f32, "n D"], parts: List[In[f32, "m D"], 5], which: In[i32, "n"], row: In[i32, "n"], two: List[In[i32, "n"], 2]):
    for t in grid("n"):
        out[t] = parts[which[t]][row[t]] + f32(len(parts)) + f32(two[0][t] if len(two) > 1 else two[len(two) - 1][t])
"""


@pytest.fixture
def module(tmp_path: Path):
    return load(tmp_path, TEXT)


def states(rng: np.random.Generator, count: int, n: int, size: int, dtype: np.dtype) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Returns rows and lses at unrelated addresses, with gaps between the rows."""
    rows = [rng.normal(size=(n + 2, 3, size + 8)).astype(dtype)[1 : n + 1, :, :size] for _ in range(count)]
    lses = [rng.normal(0, 2, (n, 3)).astype(np.float32) for _ in range(count)]
    for lse in lses:
        lse[rng.random(lse.shape) < 0.2] = -np.inf
    return rows, lses


@pytest.mark.parametrize("bound", [False, True])
@pytest.mark.parametrize("dtype", [F32, BF16], ids=str)
@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_any_number_of_states_is_merged(module, device: Device, count: int, dtype: np.dtype, bound: bool) -> None:
    rng = np.random.default_rng(count)
    kernel = module.merged.specialize(k=count) if bound else module.merged
    for n in (5, 0, 1):  # one kernel is called with lists of different tensors
        rows, lses = states(rng, count, n, 64, dtype)
        out, lse = device.poisoned((n, 3, 64), dtype), device.poisoned((n, 3), np.float32)
        kernel(out, lse, [device.put(row) for row in rows], tuple(device.put(one) for one in lses))
        want, want_lse = contract.merge(np.array(rows), np.array(lses), out_dtype=dtype)
        want.check(device.get(out), "out")
        want_lse.check(device.get(lse), "lse")


def test_a_list_has_the_bits_of_one_tensor_that_holds_all(module, tmp_path: Path, device: Device) -> None:
    stacked = load(tmp_path, TEXT.replace('List[In[T, "n H D"], 8, "k"]', 'In[T, "k n H D"]').replace('List[In[f32, "n H"], 8, "k"]', 'In[f32, "k n H"]')
                   .replace("len(parts)", 'shape("k")').replace("parts[i][t, h], lses[i][t, h]", "parts[i, t, h], lses[i, t, h]")
                   .split("@kernel\ndef gathered")[0])  # fmt: skip
    rows, lses = states(np.random.default_rng(0), 7, 6, 128, BF16)
    results = []
    for kernel, args in ((module.merged, (rows, lses)), (stacked.merged, (np.array(rows), np.array(lses)))):
        out, lse = device.poisoned((6, 3, 128), BF16), device.poisoned((6, 3), np.float32)
        kernel(out, lse, *([device.put(one) for one in arg] if isinstance(arg, list) else device.put(arg) for arg in args))
        results.append((np.array(device.get(out)).view(np.uint16), np.array(device.get(lse)).view(np.uint32)))
    for a, b in zip(*results):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_an_index_beyond_the_list_reads_zeros(module, device: Device, count: int) -> None:
    rng = np.random.default_rng(count)
    parts = [rng.normal(size=(4, 20)).astype(np.float32) for _ in range(count)]
    which, row = rng.integers(-2, count + 3, 40).astype(np.int32), rng.integers(-1, 5, 40).astype(np.int32)
    two = [np.arange(40, dtype=np.int32), np.zeros(40, np.int32)]
    for lists in (two, two[:1]):
        out = device.poisoned((40, 20), np.float32)
        module.gathered(out, [device.put(part) for part in parts], device.put(which), device.put(row), [device.put(one) for one in lists])
        inside = (which >= 0) & (which < count) & (row >= 0) & (row < 4)
        want = np.where(inside[:, None], np.array(parts)[which.clip(0, count - 1), row.clip(0, 3)], 0) + np.float32(count) + two[0][:, None]
        np.testing.assert_array_equal(device.get(out), want.astype(np.float32))


def test_calls_with_other_lists_are_refused(module) -> None:
    out, lse = np.zeros((2, 3, 16), np.float32), np.zeros((2, 3), np.float32)
    row, one = np.zeros((2, 3, 16), np.float32), np.zeros((2, 3), np.float32)
    wide = np.zeros((2, 3, 32), np.float32)
    cases = [
        ((row, [one]), 'argument "parts": expected a list of tensors of dtype T, got numpy.ndarray'),
        (([], []), 'argument "parts": expected a list of 1 to 72 tensors, got 0'),
        (([row] * 9, [one] * 9), 'argument "parts": expected 1 to 8 tensors, got 9'),
        (([row] * 2, [one] * 3), 'expected size 2 in dim 0 \\("k"\\)'),
        (([row, row.astype(BF16)], [one] * 2), "expected the dtype f32 of tensor 0, got bf16 of tensor 1"),
        (([row, wide], [one] * 2), r"expected the sizes \[2, 3, 16\] of tensor 0, got \[2, 3, 32\] of tensor 1"),
        (([row, wide[:, :, :16]], [one] * 2), r"expected the strides \[48, 16, 1\] of tensor 0, got \[96, 32, 1\] of tensor 1"),
        (([row, None], [one] * 2), "got None"),
        (([row, out], [one] * 2), 'argument "out": expected memory apart from that of argument "parts" of tensor 1, got an overlap'),
    ]
    for (parts, lses), message in cases:
        with pytest.raises(ArgumentError, match=message):
            module.merged(out, lse, parts, lses)


# The annotation of a list, its use in a body, and what the error says.
WRONG = [
    ('List[In[f32, "n"]]', "c[t] = 1.0", "how many there are at most"),
    ('List[Out[f32, "n"], 8]', "c[t] = 1.0", "expected tensors of one dim or more that are only read and never None"),
    ('List[In[f32, "n"], 0]', "c[t] = 1.0", "List: expected a bound from 1 to 72, got 0"),
    ('List[In[f32, "n"], 73]', "c[t] = 1.0", "List: expected a bound from 1 to 72, got 73"),
    ('List[In[f32, "n"], 8, "n"]', "c[t] = 1.0", "List: expected the third item to name a dim that the tensors do not have, got 'n'"),
    ('List[In[f32, "n"], 8] | None', "c[t] = 1.0", "expected a list of tensors \\(List\\), which cannot be omitted"),
    ('List[In[f32, "n"], 8]', "c[t] = x[0]", "expected a scalar, a row or a state, got a tensor of the list 'x'"),
    ('List[In[f32, "n"], 8]', "c[t] = x[0, t]", "expected one index, as in x\\[i\\]\\[…\\], got x\\[0, t\\]"),
    ('List[In[f32, "n"], 8]', "c[t] = f32(x.shape[0])", 'expected shape\\("name"\\) or len\\(x\\)'),
    ('List[In[f32, "n"], 8]', "c[t] = f32(len(c))", "expected a list of tensors, declared with List, or a tuple"),
    ('List[In[f32, "n"], 8]', "c[t] = f32(ranks(x))", "expected tensors of all ranks, declared with Peers"),
]


@pytest.mark.parametrize(("annotation", "body", "message"), WRONG)
def test_lists_that_cannot_be(tmp_path: Path, annotation: str, body: str, message: str) -> None:
    text = f'@kernel\ndef k(c: Out[f32, "n"], x: {annotation}):\n    for t in grid("n"):\n        {body}\n'
    with pytest.raises((CompileError, ArgumentError), match=message) as caught:
        _ = load(tmp_path, text).k.source
    if isinstance(caught.value, CompileError):
        assert underlined(caught.value.message)
