"""Tests that with MLAFIX_LINE_INFO, GPU code refers to the lines of the Python file that contains the kernel."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sources import KERNELS

import mlafix
from mlafix import library
from mlafix.dsl import In, Out, f32, grid, store

TARGET = "sm_90"


@mlafix.kernel
def doubles(y: Out[f32, "n D"], x: In[f32, "n D"]):
    for (t,) in grid("n"):
        row = x[t]
        store(y[t], row + row)


def line_of(text: str) -> int:
    """Returns the number of the line of this file that is `text`."""
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip() == text)


def positions(ptx: str) -> set[tuple[str, int]]:
    """Returns the file and the line of every .loc directive."""
    files = dict(re.findall(r'\.file\s+(\d+)\s+"([^"]*)"', ptx))
    return {(files[file], int(line)) for file, line in re.findall(r"\.loc\s+(\d+)\s+(\d+)\s", ptx)}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MLAFIX_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("MLAFIX_LINE_INFO", raising=False)
    return tmp_path


def test_ptx_names_the_python_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLAFIX_LINE_INFO", "1")
    found = positions(doubles.ptx(TARGET, D=64))
    assert (__file__, line_of("row = x[t]")) in found
    assert (__file__, line_of("store(y[t], row + row)")) in found
    assert {file for file, _ in found} == {__file__}


def test_ptx_names_no_lines_unless_asked() -> None:
    assert not positions(doubles.ptx(TARGET, D=64))
    assert ".file" not in doubles.ptx(TARGET, D=64)


def test_library_kernels_name_their_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLAFIX_LINE_INFO", "1")
    name = "merge_attn_states"
    text = library.path(name).read_text().splitlines()
    merge = next(number for number, line in enumerate(text, 1) if "mlafix.merge " in line)
    assert (str(library.path(name)), merge) in positions(library.kernel(name).ptx(TARGET, H=16, D=128, T="bf16"))
    assert (KERNELS / f"{name}.mlir").read_text().splitlines() == text


def test_units_with_and_without_lines_are_two(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(__file__).name.encode()
    without = doubles.compile(TARGET, D=64)
    (plain,) = folder.rglob("doubles.*.mlafix")
    assert path not in plain.read_bytes()
    monkeypatch.setenv("MLAFIX_LINE_INFO", "1")
    assert doubles.compile(TARGET, D=64) is not without
    (lined,) = set(folder.rglob("doubles.*.mlafix")) - {plain}
    assert path in lined.read_bytes()
    # The cache keeps both units, and does not mistake one for the other.
    monkeypatch.delenv("MLAFIX_LINE_INFO")
    assert doubles.compile(TARGET, D=64) is without
