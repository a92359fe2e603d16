"""Arguments `index.or_tensor`: a call passes a number, or a tensor that contains it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlafix
from devices import Device
from mlafix.dsl import In, InOut, Out, f32, grid, i32, i64, index, kernel, load, store

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")


@kernel
def cut(out: InOut[f32, "n"], last: index.at_most("n").or_tensor, first: i64.or_tensor):
    for t in grid("n"):
        store(out[t], 0.0, where=not first <= t < last)


@kernel
def shifted(out: Out[f32, "n"], x: In[f32, "m"] | None, by: i32.or_tensor):
    for t in grid("n"):
        total = 0.0
        for i in range(by):
            total += load(x[t + i], where=t + i < x.shape[0])
        out[t] = total


def numbers(device: Device, *values: int) -> Any:
    return device.put(np.array(values, np.int32))


@pytest.mark.parametrize("first_is_held", [False, True])
@pytest.mark.parametrize("last_is_held", [False, True])
def test_each_argument_is_passed_as_either(last_is_held: bool, first_is_held: bool, device: Device) -> None:
    for first, last in ((0, 5), (2, 4), (3, 1), (-7, 3)):
        out = device.put(np.arange(1, 6, dtype=np.float32))
        cut(out, numbers(device, last) if last_is_held else last, numbers(device, first) if first_is_held else first)
        index_of = np.arange(5)
        want = np.where((first <= index_of) & (index_of < last), index_of + 1, 0)
        np.testing.assert_array_equal(device.get(out), want)


def test_a_held_number_may_be_any(device: Device) -> None:
    """The host does not check a number that a tensor contains. A number past the end of the dim acts as the dim's
    size."""
    out = device.put(np.ones(5, np.float32))
    cut(out, numbers(device, 2**31 - 1), first=1)
    assert device.get(out).tolist() == [0, 1, 1, 1, 1]
    cut(out, numbers(device, -3), first=numbers(device, -(2**31)))
    assert device.get(out).tolist() == [0] * 5


def test_a_bound_call_follows_the_tensor(device: Device) -> None:
    out, last = device.put(np.ones(4, np.float32)), numbers(device, 3)
    bound = cut.bind(out, last, 0)
    bound()
    device.write(last, np.array([1], np.int32))
    bound()
    assert device.get(out).tolist() == [1, 0, 0, 0]


def test_beside_optional_tensors_and_by_name(device: Device) -> None:
    x, out = device.put(np.arange(6, dtype=np.float32)), device.poisoned((3,), np.dtype(np.float32))
    for by in (2, numbers(device, 2)):
        shifted(out, x, by)
        assert device.get(out).tolist() == [1, 3, 5]
        shifted(out, by=by, x=None)
        assert device.get(out).tolist() == [0, 0, 0]


def test_the_signature_has_both(device: Device) -> None:
    """A C host passes the number among the arguments, and the tensor, or null, after all others."""
    args = cut.signature["args"]
    assert [arg["name"] for arg in args] == ["out", "last", "first", "last_at", "first_at"]
    assert args[1]["at_most"] == "n" and args[3]["optional"] and (args[3]["dtype"], args[3]["shape"]) == ("i32", [1])
    out = device.put(np.ones(3, np.float32))
    cut(out, 0, 0, numbers(device, 2), None)
    assert device.get(out).tolist() == [1, 1, 0]


def test_a_unit_takes_either(tmp_path: Path) -> None:
    cut.save(tmp_path / "cut.mlafix", "cpu")
    held = mlafix.Unit.load(tmp_path / "cut.mlafix")["cut"]
    for last in (1, np.array([1], np.int32), np.array(1, np.int32), np.int64(1)):
        out = np.ones(3, np.float32)
        held(out, last, 0)
        assert out.tolist() == [1, 0, 0]


@pytest.mark.parametrize("last, message", [
    (4, 'argument "last": expected a value from 0 to 3'),
    ("3", 'argument "last": expected an integer, got str'),
    (np.array([1], np.int64), 'argument "last": expected dtype i32, got i64'),
    (np.array([1, 2], np.int32), 'argument "last": expected size 1 in dim 0, got 2'),
])
def test_wrong_numbers_and_tensors(last: Any, message: str) -> None:
    with pytest.raises(mlafix.ArgumentError, match=message):
        cut(np.ones(3, np.float32), last, 0)
    with pytest.raises(mlafix.ArgumentError, match=message):
        cut.bind(np.ones(3, np.float32), last, 0)


def rejected(function: Any, message: str) -> None:
    with pytest.raises(mlafix.CompileError, match=message):
        kernel(function).source  # noqa: B018


def test_rows_alone_read_what_a_tensor_may_hold() -> None:
    def extent(out: InOut[f32, "n"], k: index.or_tensor):
        for t in grid(k):
            out[t] = 0.0

    def size(out: InOut[f32, "n"], k: index.or_tensor):
        half = k // 2
        for t in grid("n"):
            store(out[t], 0.0, where=t < half)

    rejected(extent, "'k', which a tensor may hold: it is known in rows alone")
    rejected(size, "'k', which a tensor may hold: it is known in rows alone")


def test_names_and_types() -> None:
    def taken(out: InOut[f32, "n"], k: index.or_tensor, k_at: index):
        for t in grid("n"):
            store(out[t], 0.0, where=t < k + k_at)

    rejected(taken, "expected no argument 'k_at', since .or_tensor of 'k' adds a tensor with this name, got one: rename it")
    with pytest.raises(mlafix.ArgumentError, match=r"or_tensor: expected an integer type \(index, i64, i32\), got f32"):
        f32.or_tensor  # noqa: B018
    assert repr(index.at_most("n").or_tensor) == 'index.at_most("n").or_tensor'


def test_a_number_costs_what_one_of_its_own_costs() -> None:
    """A call that passes a number runs the same code as a kernel whose argument can only be a number."""
    @kernel
    def plain(out: InOut[f32, "n"], last: index.at_most("n"), first: i64):
        for t in grid("n"):
            store(out[t], 0.0, where=not first <= t < last)

    assert cut.ptx("sm_90", last_at="absent", first_at="absent").replace("cut", "plain") == plain.ptx("sm_90")


def test_a_traced_call_takes_either() -> None:
    torch = pytest.importorskip("torch")

    @torch.compile(fullgraph=True, backend="eager")
    def step(out: Any, last: Any) -> Any:
        cut(out, last, first=1)
        return out * 2

    for last in (2, torch.tensor([2], dtype=torch.int32)):
        assert step(torch.ones(3), last).tolist() == [0, 2, 0]
