"""Tests `MLAFIX_PRINT_REPRO`, with which each launch is written as a script that makes the same call."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numerics import BF16, E5M2
from sources import load

import mlafix
from mlafix._debug import repro

TEXT = """
@mlafix.kernel
def mix(y: Out[T, "n D"], x: In[T, "n D"], factor: f32, more: List[In[f32, "n D"], 4], used: In[bool_, "n"] | None):
    for t in grid("n"):
        row = f32(x[t]) * factor
        for i in range(len(more)):
            row = row + more[i][t]
        y[t] = row * (1.0 if used is None or used[t] else 2.0)


@mlafix.kernel
def double(y: InOut[f32, "n D"], x: In[f32, "n D"]):
    for t in grid("n"):
        y[t] = x[t] + x[t]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(repro, "_written", set())
    return tmp_path


def script_of(folder: Path, capfd: pytest.CaptureFixture[str]) -> Path:
    """Returns the only script that the calls wrote. Asserts that stderr names it."""
    (path,) = (folder / "mlafix-repro").glob("*.py")
    assert capfd.readouterr().err == f'mlafix: the launch of kernel "{path.name.partition("-")[0]}" is the script mlafix-repro/{path.name}\n'
    return path


def printed(script: Path, code: str) -> str:
    script.write_text(script.read_text(encoding="utf-8") + code, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "MLAFIX_PRINT_REPRO"}
    done = subprocess.run([sys.executable, "-W", "error", script], env={**environment, "PYTHONPATH": os.pathsep.join(sys.path)},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("kind", "dtype"), [("numpy", BF16), ("numpy", E5M2), ("torch", BF16)])
def test_values_strides_lists_and_what_is_omitted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], kind: str, dtype: np.dtype
) -> None:
    monkeypatch.setenv("MLAFIX_PRINT_REPRO", "values")
    rng = np.random.default_rng(5)
    x, y, more = rng.normal(size=(5, 24)).astype(dtype), np.empty((5, 8), dtype), rng.normal(size=(5, 8)).astype(np.float32)
    make: Any = lambda array: array  # noqa: E731
    if kind == "torch":
        torch = pytest.importorskip("torch")
        make = lambda array: torch.from_numpy(array.view(np.int16)).view(torch.bfloat16) if array.dtype == BF16 else torch.from_numpy(array)  # noqa: E731
    kernel = load(folder, TEXT).mix
    kernel(make(y), make(x)[:, 8:16], 1.5, [make(more)] * 2)
    kernel(make(y), make(x)[:, 8:16], 1.5, [make(more)] * 2)  # the same launch again writes no second script
    script = script_of(folder, capfd)
    assert "(24, 1)" in script.read_text() and script.read_text().count('values["array_') == 3
    view = ".view(torch.uint8).tolist()" if kind == "torch" else ".view('uint8').tolist()"
    assert printed(script, f"print(array_0{view})\n") == f"{y.view(np.uint8).tolist()}\n"


def test_without_values(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """With MLAFIX_PRINT_REPRO=1, no file contains the values of arrays. The script passes one array for both arguments,
    as the call did."""
    monkeypatch.setenv("MLAFIX_PRINT_REPRO", "1")
    x = np.full((3, 4), 77.25, np.float32)
    load(folder, TEXT).double(x, x)
    assert (x == 154.5).all()
    script = script_of(folder, capfd)
    assert not list(script.parent.glob("*.npz")) and "77" not in script.read_text()
    assert printed(script, "print(array_0.shape, array_0.any())\n") == "(3, 4) True\n"


def test_names_that_were_bound(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MLAFIX_PRINT_REPRO", "1")
    load(folder, TEXT).double.specialize(D=4)(np.ones((3, 4), np.float32), np.ones((3, 4), np.float32))
    script = script_of(folder, capfd)
    assert '.specialize(D=\'4\')' in script.read_text() and printed(script, "") == ""


def test_nothing_is_written_unless_asked(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MLAFIX_PRINT_REPRO", "0")
    load(folder, TEXT).double(np.ones((3, 4), np.float32), np.ones((3, 4), np.float32))
    assert capfd.readouterr().err == "" and not (folder / "mlafix-repro").exists()


def test_arrays_of_another_library(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        def __init__(self, array: np.ndarray) -> None:
            self.array = array

        def __dlpack__(self, **given: Any) -> Any:
            return self.array.__dlpack__(**given)

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    monkeypatch.setenv("MLAFIX_PRINT_REPRO", "1")
    with pytest.raises(mlafix.ArgumentError, match='argument "x": expected a numpy array, a torch tensor or a number, got .*Other; pass torch.from_dlpack'):
        load(folder, TEXT).double(np.ones((3, 4), np.float32), Other(np.ones((3, 4), np.float32)))
