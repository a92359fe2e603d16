"""Conversions from every dtype that can be loaded to every dtype that can be stored. Tests rows and elements, with and
without predicates."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numerics import BF16, E4M3, E5M2, F16, F32, FORMATS, round_to
from sources import HEADER, load

import mlafix
from mlafix import _runtime, cache

STORED = {
    "bf16": BF16, "f16": F16, "f32": F32, "f8e4m3fn": E4M3, "f8e5m2": E5M2, "i32": np.dtype(np.int32), "i64": np.dtype(np.int64),
    "i8": np.dtype(np.int8), "u8": np.dtype(np.uint8), "bool": np.dtype(np.bool_),
}  # fmt: skip
FLOATS = ("bf16", "f16", "f32", "f8e4m3fn", "f8e5m2")
BYTES = ("i8", "u8")
ROWS = 48
WORD = {"bool": "bool_"}
Kernels = Callable[..., Any]


def in_body(dtype: str) -> str:
    return "f32" if dtype in FLOATS else dtype


def is_legal(source: str, target: str) -> bool:
    """Returns whether a kernel may store `source` as `target`. The targets i8 and u8 accept only their own dtype,
    floats, i32 and i64. All other targets accept every source."""
    return target not in BYTES or source == target or in_body(source) in ("f32", "i32", "i64")


def halves(source: str) -> tuple[list[str], list[str]]:
    """Splits the legal targets into floats and others, since one kernel for all would have too many arguments."""
    rest = [target for target in STORED if target not in FLOATS and is_legal(source, target)]
    return list(FLOATS), rest


# Statements that store to `y`: `v` is a row or an element of the source, and `c` is the word that converts it.
WAYS = [
    "{y} = {c}({v})",
    "{y} = {c}(load({v}, where=p[t]))",
    "{y} = {c}({v}) if p[t] else {zero}",
    "store({y}, {c}({v}), where=p[t])",
]


KINDS = {"row": ("n D", "x[t]"), "one": ("n", "z[t]")}
"""The dims of a tensor and the expression that is converted, for rows and for single elements."""


def program(source: str, targets: list[str], kinds: Iterable[str] = KINDS) -> str:
    """Returns the text of a kernel that converts `source` to each of `targets` by each statement in WAYS."""
    arguments, lines = [], []
    for target in targets:
        word = "" if in_body(source) == in_body(target) or target in BYTES else WORD.get(in_body(target), in_body(target))
        zero = "False" if target == "bool" else "0"
        for i, way in enumerate(WAYS):
            for kind in kinds:
                dims, value = KINDS[kind]
                name = f"{kind}_{target}_{i}"
                # A store with a predicate skips some rows, so the tensor cannot be an Out.
                access = "InOut" if "store(" in way else "Out"
                arguments.append(f'{name}: {access}[{WORD.get(target, target)}, "{dims}"]')
                lines.append("        " + way.format(y=f"{name}[t]", c=word, v=value, zero=zero))
    dtype = WORD.get(source, source)
    given = f'x: In[{dtype}, "n D"], z: In[{dtype}, "n"], p: In[bool_, "n"]'
    return "@mlafix.kernel\ndef k(" + ", ".join([*arguments, given]) + '):\n    for t in grid("n"):\n' + "\n".join(lines) + "\n"


def values(source: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Returns random numbers that every other dtype can represent or round: limits, ties, and zeros of both signs."""
    dtype = STORED[source]
    if source == "bool":
        return rng.integers(0, 2, shape).astype(dtype)
    if source not in FLOATS:
        info = np.iinfo(dtype)
        menu = [info.min, info.max, 0, 1, -1, 17, 2**24 + 1, 2**25 - 1, -(2**24) - 1, 65519, 65520, 257, 449, 464, 465]
        menu = [number for number in menu if info.min <= number <= info.max]
        return np.array(menu, dtype)[rng.integers(0, len(menu), shape)]
    # These floats fit the integer dtypes. test_specials_convert_on_the_cpu covers larger floats and NaN.
    menu = [0.0, -0.0, 1.0, -1.5, 0.3, 1e-3, -2.0**-9, 2.0**-10, 3 * 2.0**-11, 17.0, 19.0, 447.0, 448.0, 464.0, 480.0, -3e4]
    menu += [65504.0, 57344.0, 61440.0, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-11, 2.0**-24, 2.0**-25]
    menu += [2.5, -2.5, 126.5, 127.5, -127.5, -128.5, 254.5, 255.5, -0.5, 2.0**-16, 2.0**-17, 3 * 2.0**-18]
    menu = [number for number in menu if abs(number) <= FORMATS[dtype].largest]
    return np.array(menu)[rng.integers(0, len(menu), shape)].astype(dtype)


def specials(source: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Returns special floats: NaN, infinities, -0.0, and very large and very small numbers."""
    menu = np.array([np.nan, np.inf, -np.inf, -0.0, 3e38, -3e38, 1e-40, 65520.0, 448.5])
    with np.errstate(over="ignore"):
        return menu[rng.integers(0, len(menu), shape)].astype(STORED[source])


def expected(given: np.ndarray, target: str) -> np.ndarray:
    """Returns `given` converted to `target`. For a float target, numbers are rounded to f32, as the language specifies,
    and then to the target by the tests' own round_to()."""
    dtype = STORED[target]
    if target in FLOATS:
        return round_to(dtype, given.astype(np.float32).astype(np.float64)).astype(np.float32).astype(dtype)
    if target in BYTES and dtype != given.dtype:
        info, wide = np.iinfo(dtype), given.astype(np.float64) if given.dtype.kind not in "iu" else given
        return np.clip(np.rint(np.nan_to_num(wide, nan=0.0)), info.min, info.max).astype(dtype)
    if target == "bool":
        return given.astype(np.float64) != 0
    return (np.trunc(given.astype(np.float64)) if given.dtype.kind not in "iub" else given).astype(dtype)


def assert_same(got: np.ndarray, want: np.ndarray, what: str) -> None:
    """Asserts equal bits. NaN equals any other NaN."""
    bits = f"u{got.dtype.itemsize}"
    nan = np.isnan(want.astype(np.float64)) if want.dtype.kind not in "iub" else np.zeros(want.shape, bool)
    if nan.any():
        assert np.isnan(got[nan].astype(np.float64)).all(), what
    wrong = (got.view(bits) != want.view(bits)) & ~nan
    assert not wrong.any(), f"{what}: expected {want[wrong][:4]}, got {got[wrong][:4]}"


def run(kernels: Kernels, source: str, targets: list[str], machine: str, x: np.ndarray, z: np.ndarray, kinds: Iterable[str] = KINDS) -> None:
    kernel = kernels(source, targets, kinds)
    dispatcher = _runtime.Dispatcher("k", kernel._signature_text, lambda bound, *_: kernel.compile(machine, **bound))
    p = np.arange(ROWS) % 3 != 0
    outputs, wanted = [], []
    for target in targets:
        dtype = STORED[target]
        for i, _ in enumerate(WAYS):
            for given in (x, z) if "one" in kinds else (x,):
                outputs.append(np.full(given.shape, 1, dtype))
                want = expected(given, target)
                if i:
                    want[~p] = 1 if i == 3 else 0
                wanted.append((want, f"{source} to {target}, {given.ndim} dims: {WAYS[i]}"))
    dispatcher((*outputs, x, z, p))
    for got, (want, what) in zip(outputs, wanted):
        assert_same(got, want, what)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pairs")


@pytest.fixture(scope="module")
def kernels(folder: Path) -> Kernels:
    """Returns a function that loads the kernel for a source, targets and kinds. Each text is loaded only once."""
    read = functools.cache(lambda text: load(folder, text).k)
    return lambda *given: read(program(*given))


def machines() -> list[str]:
    """Returns this processor's target and all older CPU targets."""
    own = _runtime.device_target("cpu")
    return [own, *cache._older_targets(own)]


@pytest.mark.parametrize("machine, size", [(machines()[0], 16), (machines()[0], 5), *((machine, 13) for machine in machines()[1:])])
@pytest.mark.parametrize("source", STORED)
def test_every_pair_converts_on_the_cpu(
    kernels: Kernels, rng: np.random.Generator, source: str, machine: str, size: int
) -> None:
    """Tests rows of whole packs and rows with a remainder. Size 5 tests rows only, since the code of elements does not
    depend on the size."""
    for targets in halves(source):
        kinds = KINDS if size != 5 else ("row",)
        run(kernels, source, targets, machine, values(source, (ROWS, size), rng), values(source, (ROWS,), rng), kinds)


@pytest.mark.parametrize("machine", machines())
@pytest.mark.parametrize("source", [name for name in STORED if name in FLOATS])
def test_specials_convert_on_the_cpu(kernels: Kernels, rng: np.random.Generator, source: str, machine: str) -> None:
    run(kernels, source, [*FLOATS, *BYTES], machine, specials(source, (ROWS, 16), rng), specials(source, (ROWS,), rng))


@pytest.mark.parametrize("source, chip", [*((source, chip) for source in STORED for chip in ("sm_75", "sm_90")), ("bf16", "sm_80"), ("f32", "sm_80")])
def test_every_pair_compiles_and_assembles_for_gpus(kernels: Kernels, source: str, chip: str) -> None:
    """Tests sm_75 and sm_90 for all pairs. sm_80 differs from sm_75 only in conversions between bf16 and f32, so it is
    tested with these sources only. sm_100 converts like sm_90, so it is not tested."""
    floats, rest = halves(source)
    for targets in (floats,) if (chip, source) == ("sm_80", "f32") else (floats, rest):
        unit = kernels(source, targets).compile(chip, D=16)
        assert unit.kernels[0].targets == [chip]


@pytest.mark.parametrize("source", STORED)
@pytest.mark.parametrize("target", STORED)
def test_types_do_not_mix_by_themselves(folder: Path, source: str, target: str) -> None:
    """A body that mixes two types without a conversion is an error that has a location."""
    text = program(source, [target])
    if in_body(source) == in_body(target) or (target in BYTES and is_legal(source, target)):
        load(folder, text).k.ir("source")
        return
    word = WORD.get(in_body(target), in_body(target))
    with pytest.raises(mlafix.CompileError, match="expected") as caught:
        load(folder, text.replace(f"{word}(", "(") if is_legal(source, target) else text).k.ir("source")
    assert caught.value.line == len(HEADER.splitlines()) + 4
