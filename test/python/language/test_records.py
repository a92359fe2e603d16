"""Tests frozen dataclasses in kernels: as constants from outside, as records of tensors and values for inline
functions, and as arguments."""

from __future__ import annotations

from pathlib import Path

import mlafix
import numpy as np
import pytest
from devices import Device
from sources import load, refused, underlined

TEXT = """
import dataclasses
from typing import Any

@dataclasses.dataclass(frozen=True)
class Curve:
    slope: float
    is_shifted: bool
    dtype: Any = f32
    ends: tuple = (0.25, 8)

    @property
    def twice(self):
        return 2.0 * self.slope

@dataclasses.dataclass(frozen=True)
class Result:
    out: Any
    sums: Any
    curve: Curve

@dataclasses.dataclass(frozen=True)
class Pair:
    first: Any
    second: Any = 1.0

@dataclasses.dataclass
class Loose:
    first: Any

@dataclasses.dataclass(frozen=True)
class Checked:
    first: Any

    def __post_init__(self):
        pass

@dataclasses.dataclass(frozen=True)
class Made:
    first: Any = dataclasses.field(default_factory=tuple)

CURVE = Curve(3.0, True, i32)
PARTS = (1.0, 2.0, 4.0)

@inline
def curved(v, curve):
    result = v * curve.slope
    if curve.is_shifted:
        result = result + curve.ends[0]
    return Pair(result, curve.dtype(sum(v)))

@inline
def keep(t, v, to):
    pair = curved(v, to.curve)
    to.out[t] = pair.first
    to.sums[t] = pair.second

@kernel
def bundled(out: Out[f32, "n D"], sums: Out[i32, "n"], x: In[f32, "n D"]):
    for t in grid("n"):
        keep(t, x[t], to=Result(out, sums, CURVE))

@kernel
def listed(out: Out[f32, "n two=2"], x: In[f32, "n two=2"]):
    for t in grid("n"):
        pairs = [Pair(x[t, i]) for i in range(2)]
        both = Pair([pair.first for pair in pairs], pairs[1].second)
        for i in range(2):
            out[t, i] = both.first[i] + both.second * PARTS[i] * 4.0 * CURVE.ends[0]
"""


def test_records_hold_constants_tensors_and_values(tmp_path: Path, device: Device) -> None:
    x = np.arange(6 * 40, dtype=np.float32).reshape(6, 40)
    out, sums = device.poisoned(x.shape, np.float32), device.poisoned((6,), np.int32)
    load(tmp_path, TEXT).bundled(out, sums, device.put(x))
    np.testing.assert_array_equal(device.get(out), 3 * x + 0.25)
    np.testing.assert_array_equal(device.get(sums), x.sum(1))


def test_records_hold_lists_and_defaults(tmp_path: Path, device: Device) -> None:
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    out = device.poisoned(x.shape, np.float32)
    load(tmp_path, TEXT).listed(out, device.put(x))
    np.testing.assert_array_equal(device.get(out), x + [1, 2])


@pytest.mark.parametrize(("body", "place", "message"), [
    ("out[t] = x[t] * CURVE.slop", "CURVE.slop", "expected a field of a record of type Curve (slope, is_shifted, dtype, ends), got .slop"),
    ("out[t] = x[t] * CURVE.twice", "CURVE.twice", "got .twice"),
    ("out[t] = x[t] * Pair(t).third", "Pair(t).third", "expected a field of a record of type Pair (first, second), got .third"),
    ("out[t] = x[t] * CURVE", "CURVE", "expected a scalar, a row or a state, got a record of type Curve"),
    ("out[t] = Pair().first", "Pair()", "expected a call Pair(first, second=1.0): missing a required argument: 'first'"),
    ("out[t] = Loose(x[t]).first", "Loose", "a conversion (f32, i32, i64, index, bool_), an inline function or a frozen dataclass to call, got 'Loose'"),
    ("out[t] = Checked(x[t]).first", "Checked(x[t])", "expected a dataclass with its generated __init__, no __post_init__ and no default_factory, got 'Checked'"),
    ("out[t] = Made().first", "Made()", "no __post_init__ and no default_factory, got 'Made'"),
    ("p = Pair(x[t])\nif sums[t] > 0:\n    p = Pair(x[t])", "if", "for 'p', which changes here, got a record of type Pair"),
], ids=lambda value: value if value[:1] != "e" else "")  # fmt: skip
def test_what_records_are_not(tmp_path: Path, body: str, place: str, message: str) -> None:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    text = f'{TEXT}\n@kernel\ndef k(out: Out[f32, "n D"], sums: In[i32, "n"], x: In[f32, "n D"]):\n    for t in grid("n"):\n{lines}'
    with refused(message, place):
        _ = load(tmp_path, text).k.source


def test_what_counts_of_records(tmp_path: Path) -> None:
    """The digest of a kernel changes with every field of a record that it may read."""
    def digests(text: str = TEXT) -> list[str]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        module = load(folder, text)
        return [module.bundled.digest, module.listed.digest]

    first = digests()
    assert digests(TEXT.replace("2.0 * self", "4.0 * self")) == first
    for before, after in (("3.0, True", "3.5, True"), ("True, i32", "False, i32"), ("True, i32", "True, i64")):
        changed = digests(TEXT.replace(before, after))
        assert changed[0] != first[0] and changed[1] == first[1], after  # `listed` does not read this field
    assert all(one != other for one, other in zip(digests(TEXT.replace("(0.25, 8)", "(0.5, 8)")), first))
    assert digests(TEXT.replace("second: Any = 1.0", "second: Any = 2.0"))[1] != first[1]


DECLARED = TEXT + """
@dataclasses.dataclass(frozen=True)
class Range:
    first: Any = index
    last: Any = index

@dataclasses.dataclass(frozen=True)
class Rows:
    x: Any
    within: Range
    weights: Any = In[f32, "D"] | None

def result(curve, rows="n D"):
    return Result(Out[f32, rows], InOut[i32, "n"], curve)

@kernel
def flat(to: result(CURVE), of: Rows(In[f32, "n D"], Range(), In[f32, "D"] | None), shift: f32):
    for t in grid("n"):
        keep(t, of.x[t] + shift, to)

@kernel
def nested(y: Out[f32, "n D"], of: Pair(Rows(In[f32, "n D"], 2.5), index), last: index):
    for t in grid("n"):
        v = of.first.x[t] * of.first.within
        y[t] = v if of.second <= t < last else 0.0 * v
"""


def test_fields_of_a_record_are_arguments(tmp_path: Path, device: Device) -> None:
    """A record of tensors becomes arguments with the names of its fields. A record without tensors is a constant."""
    module = load(tmp_path, DECLARED)
    assert [arg["name"] for arg in module.flat.signature["args"]] == ["out", "sums", "x", "weights", "shift"]
    assert [arg["name"] for arg in module.nested.signature["args"]] == ["y", "x", "weights", "second", "last"]
    x = np.arange(6 * 40, dtype=np.float32).reshape(6, 40)
    out, sums, y = device.poisoned(x.shape, np.float32), device.poisoned((6,), np.int32), device.poisoned(x.shape, np.float32)
    module.flat(out, sums, device.put(x), shift=1.0)
    module.nested(y, device.put(x), None, 2, 5)
    np.testing.assert_array_equal(device.get(out), 3 * (x + 1) + 0.25)
    np.testing.assert_array_equal(device.get(sums), (x + 1).sum(1))
    np.testing.assert_array_equal(device.get(y), np.where((np.arange(6) < 5) & (np.arange(6) >= 2), 2.5, 0)[:, None] * x)


@pytest.mark.parametrize(("arguments", "place", "message"), [
    ("to: Pair(1.0)", "Pair(1.0)", "or a record of them as the type of 'to', got a record of type Pair"),
    ("to: Pair(CURVE, 2)", "Pair(CURVE, 2)", "as the type of 'to', got a record of type Pair"),
    ("to: Pair", "Pair", "as the type of 'to', got "),
    ("to: 'result(1, 2)'", None, "expected the names of the dims in one string, as \"n H D\", got 2"),
    ("out: Out[f32, \"n D\"], to: result(CURVE)", "to: result(CURVE)", "expected arguments and fields of different names, got 'out' twice"),
    ("to: Pair(In[f32, \"n D\"], Pair(In[f32, \"n\"], CURVE))", None, "expected arguments and fields of different names, got 'first' twice"),
    ("to: Checked(In[f32, \"n D\"])", None, "expected a dataclass with its generated __init__, no __post_init__ and no default_factory, got 'Checked'"),
    ("to: Pair(In[f32, \"n D\"], index.or_tensor)", None, "expected a number without .or_tensor for the field 'second' of 'to', got index.or_tensor"),
    ("to: 'Pair(index) | None'", None, "expected a type, got an annotation that raises TypeError"),
], ids=lambda value: "")  # fmt: skip
def test_what_records_of_arguments_are_not(tmp_path: Path, arguments: str, place: str | None, message: str) -> None:
    text = f'{DECLARED}\n@kernel\ndef k({arguments}):\n    for t in grid("n"):\n        pass\n'
    with pytest.raises(mlafix.CompileError) as caught:
        _ = load(tmp_path, text).k.source
    assert message in caught.value.message
    assert place is None or underlined(caught.value.message) == place


def test_what_counts_of_records_of_arguments(tmp_path: Path) -> None:
    """The digest of a kernel changes with the name and the type of each field of its arguments."""
    def digest(number: int, text: str) -> str:
        folder = tmp_path / str(number)
        folder.mkdir()
        return str(load(folder, text).flat.digest)

    changes = [("weights: Any = In", "factors: Any = In"), ('Range(), In[f32, "D"] | None', 'Range(), In[f32, "D"]'), ('InOut[i32, "n"]', 'Out[i32, "n"]')]
    assert len({digest(i, DECLARED.replace(*change)) for i, change in enumerate([("", ""), *changes])}) == 4
