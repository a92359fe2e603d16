"""Tests names from outside a kernel. They stand for the values that they had when the kernel was first used. If a value
has changed since then, a call raises an error that gives the name. (Triton's message for this error is "Global variable
X has changed since we compiled this kernel".)"""

from __future__ import annotations

import dataclasses
import gc
import math
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mlafix
from mlafix import CompileError
from mlafix.dsl import DType, In, Out, f32, grid, inline
from mlafix.dsl.python_kernel import PythonKernel

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")


@dataclasses.dataclass(frozen=True)
class Record:
    number: float
    several: Any = None


T = DType("T")
FACTOR = 2.0
SEVERAL = [1.0, 2.0]
PAIR = (1.0, [2.0])
RECORD = Record(1.0, [3.0])
MODULE = types.ModuleType("constants")
MODULE.C = 4.0  # type: ignore[attr-defined]
OF_INLINE = 1.0


@inline
def helper(x: Any) -> Any:
    return x * OF_INLINE


@inline
def other_helper(x: Any) -> Any:
    return x + OF_INLINE


HELPERS = (helper,)


@mlafix.kernel
def everything(y: Out[T, "n D"], x: In[T, "n D"]) -> None:
    for t in grid("n"):
        row = helper(f32(x[t])) * FACTOR + SEVERAL[0] + PAIR[1][0] + RECORD.number + RECORD.several[0]
        y[t] = row + MODULE.C * math.pi


SAME = {  # other objects with the same meaning
    "T": lambda: DType("T"),
    "FACTOR": lambda: float("2"),
    "SEVERAL": lambda: [float("1"), 2.0],
    "PAIR": lambda: (1.0, [2.0]),
    "RECORD": lambda: Record(1.0, [3.0]),
    "OF_INLINE": lambda: float("1"),
    "helper": lambda: inline(helper.function),
}
OTHER: dict[str, tuple[Callable[[], Any], str]] = {
    "T": (lambda: DType("O"), "'T' .*, got O "),
    "FACTOR": (lambda: 3.0, "'FACTOR' as it was when the kernel was first used, 2.0, got 3.0"),
    "FACTOR as an integer": (lambda: 2, "'FACTOR' .*, 2.0, got 2 "),
    "FACTOR as an array": (lambda: np.ones(3), "'FACTOR' .*, 2.0, got an array of type"),
    "SEVERAL": (lambda: [1.0, 2.0, 3.0], "'SEVERAL' .*, a list of 2, got a list of 3"),
    "PAIR": (lambda: (1.0, [4.0]), "'PAIR' .*, a tuple of 2, got another"),
    "RECORD": (lambda: Record(2.0, [3.0]), "'RECORD.number' .*, 1.0, got 2.0"),
    "OF_INLINE": (lambda: 5.0, "'OF_INLINE' of inline function 'helper' .*, 1.0, got 5.0"),
    "helper": (lambda: other_helper, "'helper' .*, the function 'helper', got the function 'other_helper'"),
    "MODULE": (lambda: types.SimpleNamespace(C=4.0), "'MODULE.C' .*, 4.0, got nothing"),
}
IN_PLACE: dict[str, tuple[Any, str]] = {
    "list": (SEVERAL, "'SEVERAL' .*, a list of 2, got a list of 3"),
    "list in a tuple": (PAIR[1], "'PAIR' .*, a tuple of 2, got another"),
    "list in a record": (RECORD.several, "'RECORD.several' .*, a list of 1, got a list of 2"),
}


def call(kernel: Any, dim: int = 4) -> np.ndarray[Any, Any]:
    x = np.ones((2, dim), np.float32)
    y = np.zeros_like(x)
    kernel(y, x)
    return y


def ways(kernel: Any) -> Iterator[Callable[[], object]]:
    """Yields every way to compile or launch a kernel."""
    x = np.ones((2, 4), np.float32)
    yield lambda: kernel(x.copy(), x)
    yield lambda: call(kernel, 8)
    yield lambda: kernel.bind(x.copy(), x)
    yield lambda: kernel.compile("x86-64-v3", D=12, T="f32")
    yield lambda: kernel.ir("lowered", D=4, T="f32")
    yield lambda: kernel.specialize(D=4)(x.copy(), x)
    yield lambda: kernel.digest


@pytest.fixture
def kernel() -> PythonKernel:
    return PythonKernel(everything.function)


@pytest.mark.parametrize("name", SAME)
def test_another_object_that_says_the_same_is_as_good(kernel: PythonKernel, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    expected = call(kernel)
    for _ in range(2):
        monkeypatch.setitem(globals(), name, SAME[name]())
        assert (call(kernel) == expected).all()


@pytest.mark.parametrize("name", OTHER)
def test_another_value_is_an_error(kernel: PythonKernel, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    other, message = OTHER[name]
    expected = call(kernel)
    with monkeypatch.context() as changes:
        changes.setitem(globals(), name.split()[0], other())
        for way in ways(kernel):
            with pytest.raises(CompileError, match=f"kernel 'everything': expected {message}") as error:
                way()
            assert error.value.file == __file__ and error.value.line == everything.function.__code__.co_firstlineno + 1
    assert (call(kernel) == expected).all()


@pytest.mark.parametrize("what", IN_PLACE)
def test_a_list_that_is_changed_in_place_is_an_error(kernel: PythonKernel, what: str) -> None:
    changed, message = IN_PLACE[what]
    expected = call(kernel)
    changed.append(7.0)
    try:
        for way in ways(kernel):
            with pytest.raises(CompileError, match=f"expected {message}"):
                way()
    finally:
        changed.pop()
    assert (call(kernel) == expected).all()


def test_a_name_in_a_module_is_an_error(kernel: PythonKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    call(kernel)
    monkeypatch.setattr(MODULE, "C", 5.0)
    with pytest.raises(CompileError, match=r"expected 'MODULE\.C' .*, 4\.0, got 5\.0"):
        call(kernel)


def test_a_name_that_is_gone_is_an_error(kernel: PythonKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    call(kernel)
    monkeypatch.delitem(globals(), "FACTOR")
    with pytest.raises(CompileError, match="expected 'FACTOR' .*, 2.0, got nothing"):
        call(kernel)


def test_a_variable_of_an_enclosing_function_is_an_error() -> None:
    factor = 2.0

    @mlafix.kernel
    def scaled(y: Out[T, "n D"], x: In[T, "n D"]) -> None:
        for t in grid("n"):
            y[t] = f32(x[t]) * factor

    assert (call(scaled) == 2).all()
    factor = 3.0
    with pytest.raises(CompileError, match="expected 'factor' .*, 2.0, got 3.0"):
        call(scaled)
    factor = 2.0
    assert (call(scaled) == 2).all()


def test_before_the_first_use_names_may_change(kernel: PythonKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    before = call(PythonKernel(everything.function))
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert (call(kernel) == before + 1).all()


def test_inline_functions_in_a_tuple_are_followed() -> None:
    watched = {watch[1] for watch in PythonKernel(uses_helpers.function)._outside.watched}
    assert {"HELPERS", "OF_INLINE"} <= watched


@mlafix.kernel
def uses_helpers(y: Out[T, "n D"], x: In[T, "n D"]) -> None:
    for t in grid("n"):
        y[t] = HELPERS[0](f32(x[t]))


def test_torch_tensors_take_the_short_way_and_see_it(kernel: PythonKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones(2, 4)
    for _ in range(2):
        kernel(torch.empty_like(x), x)
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    for _ in range(2):
        with pytest.raises(CompileError, match="expected 'FACTOR' .*, 2.0, got 3.0"):
            kernel(torch.empty_like(x), x)


def test_what_is_watched_does_not_keep_a_kernel_alive() -> None:
    def make() -> weakref.ref[Any]:
        values = [2.0]

        @mlafix.kernel
        def scaled(y: Out[T, "n D"], x: In[T, "n D"]) -> None:
            for t in grid("n"):
                y[t] = f32(x[t]) * values[0]

        values.append(scaled)  # the watched values contain the kernel itself, a cycle
        call(scaled)
        return weakref.ref(scaled)

    kernel = make()
    gc.collect()
    assert kernel() is None


def test_kernels_of_the_package_watch_nothing() -> None:
    from mlafix.kernels import tokens

    assert isinstance(tokens.pack_rows, PythonKernel) and not tokens.pack_rows._outside.watched
