"""Units in Python: loading a unit, looking up its kernels, and errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import mlafix
from mlafix import _runtime, library

Compile = Callable[..., Path]


@pytest.fixture(scope="module")
def path(compile_unit: Compile) -> Path:
    return compile_unit("merge_attn_states", "H=4,D=64,T=bf16", "H=4,D=64,T=f32")


def test_unit_from_file_and_from_memory_hold_the_same(path: Path) -> None:
    for unit in (mlafix.Unit.load(path), mlafix.Unit.load(str(path)), mlafix.Unit.from_bytes(path.read_bytes())):
        bases = dict.fromkeys(("B", "PrefixBase", "SuffixBase", "ResultBase", "MeetingBase"), "e")
        assert [k.bindings for k in unit.kernels] == [{**bases, "D": "64", "H": "4", "T": dtype} for dtype in ("bf16", "f32")]
        assert unit.producer.startswith("mlafix ")
        unit.prepare("cpu")


def test_kernel_describes_its_arguments(path: Path) -> None:
    kernel = mlafix.Unit.load(path).kernel("merge_attn_states", {"T": "bf16"})
    assert kernel.name == "merge_attn_states"
    assert "x86-64-v3" in kernel.targets
    args = {arg["name"]: arg for arg in kernel.args}
    assert args["out"] == {
        "name": "out",
        "kind": "tensor",
        "dtype": "bf16",
        "dims": ["n", "H", "D"],
        "shape": [None, 4, 64],
        "strides": [None, None, 1],
        "access": "write",
        "optional": False,
    }
    assert args["out_lse"]["optional"]
    assert args["context_rows"] == {"name": "context_rows", "kind": "scalar", "dtype": "index", "at_most": "n"}
    assert kernel.code("cpu")["format"] == "cpu"


def test_kernel_outlives_its_unit(path: Path) -> None:
    kernel = mlafix.Unit.load(path).kernel("merge_attn_states", {"T": "f32"})
    assert kernel.bindings["T"] == "f32"


def test_several_matching_kernels_are_an_argument_error(path: Path) -> None:
    with pytest.raises(mlafix.ArgumentError, match="merge_attn_states"):
        mlafix.Unit.load(path).kernel("merge_attn_states")


def test_missing_kernel_is_a_unit_error_that_lists_what_is_there(path: Path) -> None:
    with pytest.raises(mlafix.UnitError, match="merge_attn_states"):
        mlafix.Unit.load(path).kernel("no_such_kernel")


def test_bindings_that_are_no_dict_are_an_argument_error(path: Path) -> None:
    with pytest.raises(mlafix.ArgumentError, match='argument "bindings": expected a dict'):
        mlafix.Unit.load(path).kernel("merge_attn_states", "T=bf16")  # type: ignore[arg-type]


def test_files_that_are_no_units_are_unit_errors(tmp_path: Path, path: Path) -> None:
    with pytest.raises(mlafix.UnitError, match="No such file"):
        mlafix.Unit.load(tmp_path / "absent.mlafix")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    with pytest.raises(mlafix.UnitError):
        mlafix.Unit.from_bytes(bytes(data))
    with pytest.raises(mlafix.UnitError):
        mlafix.Unit.from_bytes(b"")


def test_device_names() -> None:
    assert _runtime.device_target("cpu").startswith("x86-64")
    for wrong in ("gpu", "cuda:", "cuda:-1", "cuda:1x", ""):
        with pytest.raises(mlafix.ArgumentError, match='argument "device": expected "cpu", "cuda" or "cuda:N"'):
            _runtime.device_target(wrong)


def test_one_tree_of_exceptions() -> None:
    for kind in (mlafix.ArgumentError, mlafix.CompileError, mlafix.DriverError, mlafix.UnitError):
        assert issubclass(kind, mlafix.Error)
    error = mlafix.CompileError("expected X, got Y", "kernel.py", 3, 7)
    assert (str(error), error.file, error.line, error.column) == ("expected X, got Y", "kernel.py", 3, 7)


merge = library.kernel("merge_attn_states").specialize(H=4, D=64, T="f32")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda unit: merge.compile(90), 'argument "target": expected the name of a target, as "sm_90", or None, got 90'),
        (lambda unit: merge.ptx(90), 'argument "target": expected the name of a target'),
        (lambda unit: merge.remarks(b"sm_90"), "argument \"target\": expected .*, got b'sm_90'"),
        (lambda unit: merge.save("none.mlafix", 90), 'argument "targets": expected the names of targets, .*, got 90'),
        (lambda unit: merge.save("none.mlafix", ["cpu", 90]), 'argument "targets": expected the names of targets'),
        (lambda unit: mlafix.Unit.from_bytes("text"), 'argument "data": expected bytes, got str'),
        (lambda unit: unit.kernel(3), 'argument "name": expected a kernel\'s name, got 3'),
        (lambda unit: unit.prepare(0), 'argument "device": expected "cpu", "cuda" or "cuda:N", got 0'),
        (lambda unit: unit.prepare(None), 'argument "device": expected "cpu", "cuda" or "cuda:N", got None'),
    ],
)
def test_what_is_no_target_and_no_name(path: Path, call: Callable[[mlafix.Unit], object], message: str) -> None:
    with pytest.raises(mlafix.ArgumentError, match=message):
        call(mlafix.Unit.load(path))
