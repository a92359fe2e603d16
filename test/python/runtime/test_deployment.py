"""Kernels that were compiled elsewhere run without a compiler: units that Python loads, and Python kernels with units
beside them."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlafix
import numpy as np
import pytest
from mlafix import UnitKernel
from mlafix._files import disk
from mlafix.dsl import Base, DType, In, Out, f32, grid, identity, index, load_state, merge, store_state
from mlafix.dsl.python_kernel import PythonKernel

T = DType("T")
B = Base("B")


@mlafix.kernel
def merge_pieces(out: Out[T, "n D"], lse: Out[f32, "n"] | None, parts: In[T, "k n D"], part_lses: In[f32, "k n"], last: index.at_most("n")):
    for t in grid("n"):
        state = identity("D", base=B)
        for i in range(parts.shape[0]):
            state = merge(state, load_state(parts[i, t], part_lses[i, t], where=t < last, base=B))
        store_state(state, out[t], lse[t])


@pytest.fixture(scope="module")
def unit_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("units") / "pieces.mlafix"
    merge_pieces.save(path, "cpu", {"D": 4, "B": 2}, {"D": 4}, {"D": 8}, {"D": 8, "lse": "absent"}, T="f32")
    return path


def arguments(dim: int = 4) -> dict[str, Any]:
    parts = np.stack([np.full((3, dim), x, np.float32) for x in (1, 3)])
    return {"out": np.empty((3, dim), np.float32), "lse": np.empty(3, np.float32), "parts": parts,
            "part_lses": np.zeros((2, 3), np.float32), "last": 3}  # fmt: skip


# -- Units ------------------------------------------------------------------------------------------------------------


def test_a_kernel_of_a_unit_is_called_by_position_and_by_name(unit_file: Path) -> None:
    kernel = mlafix.Unit.load(unit_file)["merge_pieces"]
    assert isinstance(kernel, UnitKernel)
    for dim in (4, 8):
        given = arguments(dim)
        kernel(*given.values())
        assert (given["out"] == 2).all() and np.allclose(given["lse"], np.log(2))
        given = arguments(dim)
        kernel(**{name: value for name, value in given.items() if name != "lse"})
        assert (given["out"] == 2).all()


def test_a_kernel_of_a_unit_is_bound(unit_file: Path) -> None:
    given = arguments()
    bound = mlafix.Unit.load(unit_file)["merge_pieces"].bind(**given)
    given["parts"][:] = 5
    bound()
    assert (given["out"] == 5).all()


def test_names_and_specializations_of_a_unit(unit_file: Path) -> None:
    unit = mlafix.Unit.load(unit_file)
    assert list(unit) == ["merge_pieces"] and "merge_pieces" in unit and "other" not in unit
    assert not any(one in unit for one in (3, None, b"merge_pieces", ("merge_pieces",), "a\udc80b"))
    listed = unit["merge_pieces"].specializations
    assert [(bindings["D"], bindings["B"], bindings.get("lse")) for bindings, _ in listed] == [
        ("4", "2", None), ("4", "e", None), ("8", "e", None), ("8", "e", "absent")]  # fmt: skip
    assert all("x86-64-v3" in targets for _, targets in listed)


def test_a_base_that_was_compiled_is_chosen(unit_file: Path) -> None:
    given = arguments()
    mlafix.Unit.load(unit_file)["merge_pieces"].specialize(B=2)(**given)
    assert np.allclose(given["lse"], 1)  # the expected lse is log2(2)


WRONG_CALLS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "dtype": lambda given: {"out": np.empty((3, 4), np.float64)},
    "size": lambda given: {"part_lses": np.zeros((2, 4), np.float32)},
    "overlap": lambda given: {"lse": given["parts"][0, 0, :3]},
    "bound": lambda given: {"last": 4},
    "name": lambda given: {"other": 1},
    "number": lambda given: {"last": None},
}


@pytest.mark.parametrize("change", WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_wrong_calls_get_the_messages_of_a_python_kernel(unit_file: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    kernel, messages = mlafix.Unit.load(unit_file)["merge_pieces"], []
    for called in (kernel, merge_pieces):
        given = arguments(4)
        with pytest.raises(mlafix.ArgumentError) as caught:
            called(**{**given, **change(given)})
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_what_was_not_compiled_is_a_unit_error(unit_file: Path) -> None:
    with pytest.raises(mlafix.UnitError, match="expected a unit for .*D=16.*, got one for .*D=4.* and .*D=8"):
        mlafix.Unit.load(unit_file)["merge_pieces"](**arguments(16))
    with pytest.raises(mlafix.UnitError, match='expected a kernel of the unit .merge_pieces., got "other"'):
        mlafix.Unit.load(unit_file)["other"]


@pytest.mark.parametrize("name, got", [(3, "3"), (b"k", "b'k'"), ("\ud800", r'"\\ud800"')], ids=ascii)
def test_what_is_no_name_of_a_kernel_is_a_unit_error(unit_file: Path, name: Any, got: str) -> None:
    with pytest.raises(mlafix.UnitError, match=f"expected a kernel of the unit .merge_pieces., got {got}$"):
        mlafix.Unit.load(unit_file)[name]


# -- Python kernels ---------------------------------------------------------------------------------------------------

KERNEL = """
import sys
from mlafix.dsl import DType, In, Out, f32, grid, inline
import mlafix
T = DType("T")
SCALE = 2.0

@inline
def scaled(row):
    return row * SCALE

@mlafix.kernel
def double(y: Out[T, "n D"], x: In[T, "n D"]):
    for t in grid("n"):
        y[t] = scaled(x[t])
"""
NO_COMPILER = 'import sys; sys.modules["mlafix._compiler"] = None\n'
CALL = """
import sys
import numpy as np
from kernels import double
y = np.empty((2, 4), np.float32)
double(y, np.ones((2, 4), np.float32))
assert (y == {value}).all(), y
assert sys.modules.get("mlafix._compiler") is None
"""


def run(folder: Path, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name != "MLAFIX_PREBUILT"}
    return subprocess.run([sys.executable, "-W", "error", "-c", script], cwd=folder, capture_output=True, text=True,
                          env={**inherited, "MLAFIX_CACHE_DIR": str(folder / "cache"), **environment})  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder that contains a Python file with a kernel."""
    (tmp_path / "kernels.py").write_text(KERNEL)
    return tmp_path


def save(folder: Path, path: Path) -> None:
    done = run(folder, f'from kernels import double; double.save({str(path)!r}, "cpu", D=4, T="f32")')
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["kernels.mlafix", "double.mlafix"])
def test_a_unit_beside_the_python_file_needs_no_compiler(folder: Path, name: str) -> None:
    save(folder, folder / name)
    done = run(folder, NO_COMPILER + CALL.format(value=2))
    assert done.returncode == 0, done.stderr


def test_a_unit_compiled_ahead_needs_no_compiler_and_no_cache(folder: Path) -> None:
    (folder / "ahead").mkdir()
    save(folder, folder / "ahead" / "anything.mlafix")
    done = run(folder, NO_COMPILER + CALL.format(value=2), MLAFIX_PREBUILT=str(folder / "ahead"), MLAFIX_CACHE="0")
    assert done.returncode == 0, done.stderr


def test_the_same_without_a_unit_says_where_one_was_expected(folder: Path) -> None:
    done = run(folder, NO_COMPILER + CALL.format(value=2), MLAFIX_PREBUILT=str(folder))
    message = f'UnitError: kernel "double": expected a unit compiled ahead, double.mlafix or kernels.mlafix in {folder} or any in {folder}, got none;'
    assert message in done.stderr


def test_a_unit_of_another_name_beside_the_python_file_is_named(folder: Path) -> None:
    save(folder, folder / "rows.mlafix")
    done = run(folder, NO_COMPILER + CALL.format(value=2))
    assert 'any in a folder of MLAFIX_PREBUILT, got rows.mlafix, which holds "double" but has another name;' in done.stderr
    (folder / "others.py").write_text(KERNEL.replace("def double", "def half"))
    (folder / "rows.mlafix").rename(folder / "others.mlafix")
    done = run(folder, NO_COMPILER + CALL.format(value=2).replace("kernels import double", "others import half as double"))
    assert "half.mlafix or others.mlafix in" in done.stderr and "got others.mlafix, which holds double;" in done.stderr


def test_error_lists_what_the_unit_supports(folder: Path) -> None:
    path = folder / "kernels.mlafix"
    done = run(folder, f'from kernels import double; double.save({str(path)!r}, "sm_90", dict(D=64), dict(D=128), T="f16")')
    assert done.returncode == 0, done.stderr
    done = run(folder, NO_COMPILER + CALL.format(value=2))
    assert "expected a compiled specialisation for D=4, T=f32 on x86-64" in done.stderr
    assert f"double.mlafix or kernels.mlafix in {folder}" in done.stderr
    assert f"got {path} for D=64, T=f16 (on sm_90) and D=128, T=f16 (on sm_90), and this installation has no compiler" in done.stderr
    save(folder, path)
    done = run(folder, NO_COMPILER + CALL.format(value=2).replace("(2, 4)", "(2, 8)"))
    assert f"got {path} for D=4, T=f32, and this" in done.stderr


OTHERS = {
    "constant": ("SCALE = 2.0", "SCALE = 3.0", "the same text of the function, with another value of one of scaled, T, SCALE"),
    "inline": ("row * SCALE", "row * SCALE * 1.5", "the same text of the function, with another value of one of scaled, T, SCALE"),
    "text": ("y[t] = scaled(x[t])", "y[t] = 1.5 * scaled(x[t])", "another text of the function"),
}


@pytest.mark.parametrize("before, after, other", OTHERS.values(), ids=OTHERS)
def test_a_unit_of_another_text_is_not_used(folder: Path, before: str, after: str, other: str) -> None:
    save(folder, folder / "kernels.mlafix")
    (folder / "kernels.py").write_text(KERNEL.replace(before, after))
    done = run(folder, NO_COMPILER + CALL.format(value=3))
    assert f"got one that was compiled of {other} ({folder / 'kernels.mlafix'}): compile it again" in done.stderr
    done = run(folder, CALL.format(value=3).replace("assert sys", "# "))
    assert done.returncode == 0, done.stderr


def test_one_name_with_another_value_is_named(folder: Path) -> None:
    text = KERNEL.replace("scaled(x[t])", "x[t] * 2.0")
    (folder / "kernels.py").write_text(text)
    save(folder, folder / "kernels.mlafix")
    (folder / "kernels.py").write_text(text.replace('DType("T")', 'DType("T", default=f32)'))
    done = run(folder, NO_COMPILER + CALL.format(value=2))
    assert "compiled of the same text of the function, with another value of T (" in done.stderr


def test_comments_and_lines_do_not_count(folder: Path) -> None:
    save(folder, folder / "kernels.mlafix")
    (folder / "kernels.py").write_text("# A comment.\n\n" + KERNEL.replace("    for t", "    # Each row.\n    for  t"))
    done = run(folder, NO_COMPILER + CALL.format(value=2))
    assert done.returncode == 0, done.stderr


def test_what_another_process_compiled_is_called_without_the_compiler(folder: Path) -> None:
    first = run(folder, CALL.format(value=2).replace("assert sys", "# "))
    assert first.returncode == 0, first.stderr
    again = run(folder, CALL.format(value=2))
    assert again.returncode == 0, again.stderr
    assert not list((folder / "cache").rglob("*.lock"))


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda good: b"",  # as if power had failed before the data was written
    "zeros": lambda good: bytes(len(good)),
    "half": lambda good: good[: len(good) // 2],
    "more": lambda good: good + b"xx",
    "null": lambda good: b"null",
    "list": lambda good: b"[]",
    "object": lambda good: b"{}",
    "number": lambda good: b"3",
    "not UTF-8": lambda good: b"\xff" + good,
    "nested": lambda good: b"[" * 100000,
    "other values": lambda good: good.replace(b'"read"', b"null"),
    "other names": lambda good: good.replace(b'"lse"', b'"lso"'),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_record_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    monkeypatch.setenv("MLAFIX_CACHE_DIR", str(tmp_path / "cache"))
    signature = PythonKernel(merge_pieces.function).signature
    (record,) = (tmp_path / "cache").rglob("*.json")
    good = record.read_bytes()
    assert json.loads(good)["record"] == signature
    record.write_bytes(DAMAGE[damage](good))
    assert record.read_bytes() != good
    assert PythonKernel(merge_pieces.function).signature == signature
    assert record.read_bytes() == good


def test_a_record_of_another_kernel_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLAFIX_CACHE_DIR", str(tmp_path / "cache"))
    signature = PythonKernel(merge_pieces.function).signature
    (record,) = (tmp_path / "cache").rglob("*.json")
    other = disk.Folder(record.parent)
    other.write_record("another.json", '{"args": []}')
    os.replace(record.with_name("another.json"), record)
    assert PythonKernel(merge_pieces.function).signature == signature


SCRIPT = """
if __name__ == "__main__":
    import numpy as np
    t, x, y, s, row = 3, np.ones((2, 4), np.float32), np.empty((2, 4), np.float32), "text", 5.0
    double(y, x)
    assert (y == 2).all()
"""


def test_globals_with_the_names_of_arguments_and_locals_do_not_count(folder: Path) -> None:
    """Globals of a script may have the names of the kernel's arguments and locals. Such globals do not change the
    kernel's digest, so the script runs with the unit that was compiled when these globals did not exist."""
    path = folder / "kernels.py"
    path.write_text(KERNEL + SCRIPT)
    save(folder, folder / "kernels.mlafix")
    done = run(folder, NO_COMPILER + f"import runpy; runpy.run_path({str(path)!r}, run_name='__main__')")
    assert done.returncode == 0, done.stderr


DIGESTS = """
import types, numpy
from mlafix.dsl import *
N, W, DIMS, TABLE, FACTORS = 2, 3.0, "n D", {"dims": "n D"}, (1.0, 2.0)
C, c = 2, 0.25

@inline
def power(v, w=W):
    return v * w
POWERS = (power, 1)

@kernel
def k(y: Out[f32, DIMS], x: In[f32, TABLE["dims"]], lens: In[i32, "b"]):
    for s, t in segments(lens, "n", where=lambda b: lens[b] > N):
        v = x[t] * FACTORS[0]
        for i in range(N):
            v = POWERS[0](v)
        parts = [v * c for c in range(C)]
        y[t] = parts[1] * c
"""


def test_what_counts_of_the_names_of_outside(tmp_path: Path) -> None:
    """A kernel's digest covers everything that the front end reads from outside the kernel, and nothing else."""
    def digest(text: str = DIGESTS) -> str:
        path = tmp_path / f"k{len(list(tmp_path.iterdir()))}.py"
        path.write_text(text)
        return str(runpy.run_path(str(path))["k"].digest)

    assert digest() == digest(DIGESTS + "y = x = lens = s = t = b = v = i = w = 7\n") == digest(DIGESTS + "v = numpy.ones(3)\n")
    for before, after in (("C, c = 2", "C, c = 3"), ("0.25", "0.5"), ("2, 3.0", "4, 3.0"), ("2, 3.0", "2, 3.5"), ("(1.0, 2.0)", "(1.5, 2.0)"), ('3.0, "n D"', '3.0, "m D"'),
                          ('{"dims": "n D"}', '{"dims": "m D"}'), ("v * w", "v + w"), ("2.0)\n", "2.0)\ndef range(n): pass\n")):  # fmt: skip
        assert before in DIGESTS and digest(DIGESTS.replace(before, after, 1)) != digest(), after


def test_a_name_of_a_comprehension_is_another_one_outside_of_it(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(DIGESTS)
    kernel = runpy.run_path(str(path))["k"]
    assert "2.500000e-01" in kernel.source


def test_in_and_out_are_told_apart(folder: Path) -> None:
    """Two kernels have the same text, but the name Way in it stands for Out in one and for InOut in the other. The
    digests of the kernels differ."""
    for name, way in (("one", "Out"), ("two", "InOut")):
        (folder / f"{name}.py").write_text(KERNEL.replace("Out[T", "Way[T").replace("import DType", f"import {way} as Way, DType"))
    done = run(folder, "import one, two; assert one.double.digest != two.double.digest; assert len(one.double.digest) == 32")
    assert done.returncode == 0, done.stderr


def test_a_kernel_whose_source_was_read_needs_its_file_no_more(tmp_path: Path) -> None:
    path = tmp_path / "gone.py"
    text = "from mlafix.dsl import In, Out, f32, grid, kernel\n\n@kernel\ndef copy(y: Out[f32, 'n D'], x: In[f32, 'n D']):\n    for t in grid('n'):\n        y[t] = x[t]\n"
    path.write_text(text)
    names: dict[str, Any] = {"__name__": "gone"}
    exec(compile(text, str(path), "exec"), names)
    copy = names["copy"]
    assert "mlafix.forall" in copy.source
    path.unlink()
    x = np.ones((2, 4), np.float32)
    for kernel in (copy, copy.specialize(D=4)):
        y = np.full_like(x, np.nan)
        kernel(y, x)
        assert (y == x).all()
