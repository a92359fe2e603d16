"""Arguments whose methods return anything or raise anything. The call raises an error; the process never ends, and no
error is swallowed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import fake_cuda
import numpy as np
import pytest

import mlafix
from mlafix import _runtime, library

N, H, D = 5, 4, 8
MakeDispatcher = Callable[..., _runtime.Dispatcher]
EXITS = [SystemExit, KeyboardInterrupt, GeneratorExit]


class Producer:
    """Returns the given objects from DLPack's methods. If an object is an exception, the method raises it."""

    def __init__(self, device: object = (1, 0), capsule: object = None) -> None:
        self.answers = {"device": device, "capsule": capsule}

    def answer(self, what: str) -> object:
        answer = self.answers[what]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def __dlpack_device__(self) -> object:
        return self.answer("device")

    def __dlpack__(self, **_: object) -> object:
        return self.answer("capsule")


class Number:
    """A number whose conversion to an integer raises the given error."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __index__(self) -> int:
        raise self.error


class Stream:
    def __init__(self, name: str, error: BaseException) -> None:
        self.name, self.error = name, error

    def __getattr__(self, name: str) -> object:
        if name == self.name:
            raise self.error
        raise AttributeError(name)


@pytest.fixture(scope="module")
def dispatch(merge_dispatcher: MakeDispatcher) -> _runtime.Dispatcher:
    return merge_dispatcher()


def arguments(**changed: object) -> tuple[object, ...]:
    rows, lses = np.ones((N, H, D), np.float32), np.zeros((H, N), np.float32)
    args: dict[str, object] = {"out": rows.copy(), "out_lse": lses.copy(), "prefix": rows, "prefix_lse": lses}
    args |= {"suffix": rows, "suffix_lse": lses, "context_rows": 3}
    return tuple({**args, **changed}.values())


@pytest.mark.parametrize("device", [(), (1,), (1, 0, 0), None, 3, "1", ("cpu", 0), (None, 0), (1.5, 0), (2**70, 0), (-1, 0), {}])
def test_a_device_that_is_no_pair_of_integers(dispatch: _runtime.Dispatcher, device: object) -> None:
    with pytest.raises(mlafix.ArgumentError, match="expected __dlpack_device__ of .*Producer to give a pair of integers"):
        dispatch(arguments(prefix=Producer(device)))


@pytest.mark.parametrize("error", [RuntimeError("out of order"), ValueError("bad \udc80 text"), TypeError("no such option")])
def test_exceptions_of_a_producer_are_told(dispatch: _runtime.Dispatcher, error: Exception) -> None:
    told = str(error).encode(errors="backslashreplace").decode().replace("\\", "\\\\")
    with pytest.raises(mlafix.ArgumentError, match=f"whose __dlpack_device__ failed: {told}"):
        dispatch(arguments(prefix=Producer(error)))
    with pytest.raises(mlafix.ArgumentError, match=f"whose __dlpack__ failed: {told}"):
        dispatch(arguments(prefix=Producer(capsule=error)))


def test_an_exception_without_a_text(dispatch: _runtime.Dispatcher) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    with pytest.raises(mlafix.ArgumentError, match="whose __dlpack__ failed: .*Mute"):
        dispatch(arguments(prefix=Producer(capsule=Mute())))


@pytest.mark.parametrize("exit_", EXITS)
def test_what_ends_a_program_passes_through(dispatch: _runtime.Dispatcher, exit_: type[BaseException]) -> None:
    class Meta(type):
        def __getattr__(cls, name: str) -> object:
            if name == "__dlpack_c_exchange_api__":
                raise exit_
            raise AttributeError(name)

    class Asked(metaclass=Meta):
        pass

    hostile = [
        arguments(prefix=Producer(exit_())),
        arguments(prefix=Producer(capsule=exit_())),
        arguments(prefix=Asked()),
        arguments(context_rows=Number(exit_())),
    ]
    for args in hostile:
        with pytest.raises(exit_):
            dispatch(args)
        with pytest.raises(exit_):
            dispatch.bind(args)
    for name in ("cuda_stream", "__cuda_stream__"):
        with pytest.raises(exit_):
            dispatch(arguments(), Stream(name, exit_()))
    dispatch(arguments())


def test_an_integer_that_python_does_not_write_out(dispatch: _runtime.Dispatcher) -> None:
    with pytest.raises(mlafix.ArgumentError, match="expected an integer of 64 bits, got an integer of 16610 bits"):
        dispatch(arguments(context_rows=10**5000))
    with pytest.raises(mlafix.ArgumentError, match='argument "stream": expected None'):
        dispatch(arguments(), 10**5000)


@pytest.mark.parametrize(("bits", "lanes"), [(32, 2), (32, 0), (4, 4)])
def test_elements_of_several_lanes(dispatch: _runtime.Dispatcher, bits: int, lanes: int) -> None:
    class Lanes(fake_cuda.Producer):
        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    rows = Lanes((N, H, D), 0)
    tensor = rows.managed.tensor
    tensor.device_type, tensor.bits, tensor.lanes = 1, bits, lanes
    message = f'argument "prefix": expected elements of 1 lane, got a dtype of DLPack code 2, {bits} bits, {lanes} lanes'
    with pytest.raises(mlafix.ArgumentError, match=message):
        dispatch(arguments(prefix=rows))


# -- Texts not in UTF-8 -----------------------------------------------------------------------------------------------

LONE = "a\udc80b"


def test_names_with_lone_surrogates(merge_dispatcher: MakeDispatcher, dispatch: _runtime.Dispatcher) -> None:
    with pytest.raises(mlafix.ArgumentError, match=r'got "a\\udc80b"'):
        merge_dispatcher(views={LONE: (0,)})
    signature = json.loads(library.signature("merge_attn_states"))
    signature["args"][2]["name"] = signature["args"][2]["dims"][0] = LONE
    named = _runtime.Dispatcher("merge_attn_states", json.dumps(signature), lambda *_: None)
    with pytest.raises(mlafix.ArgumentError, match=r'argument "a\\udc80b": expected a tensor'):
        named(arguments(prefix=3))


def test_bindings_with_lone_surrogates(compile_unit: Callable[..., Path]) -> None:
    unit = _runtime.Unit.load(compile_unit("merge_attn_states", "H=4,D=8,T=f32"))
    with pytest.raises(mlafix.UnitError, match=r"a\\udc80b=1"):
        unit.kernel("merge_attn_states", {LONE: 1})


@pytest.mark.parametrize("shift", range(4))
def test_long_texts_in_messages(compile_unit: Callable[..., Path], shift: int) -> None:
    unit = _runtime.Unit.load(compile_unit("merge_attn_states", "H=4,D=8,T=f32"))
    with pytest.raises(mlafix.UnitError, match="€€€"):
        unit.kernel("x" * shift + "€" * 2000)
    with pytest.raises(mlafix.UnitError, match="€€€"):
        _runtime.Unit.load("/no/" + "x" * shift + "€" * 1000)


def test_a_file_name_that_is_no_utf8() -> None:
    with pytest.raises(mlafix.UnitError, match=r'cannot open unit "/no/such-\\xff.mlafix"'):
        _runtime.Unit.load(b"/no/such-\xff.mlafix")
