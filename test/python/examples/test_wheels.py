"""Tests scripts/make-wheels: which Python builds each extension module, and the name, metadata and file list of a
wheel. scripts/test-wheels tests the wheels themselves."""

from __future__ import annotations

import base64
import hashlib
import runpy
import zipfile
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "make-wheels"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="needs scripts/, which is not beside these tests")


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def fake_python(folder: Path, minor: int, headers: bool = True) -> str:
    path = folder / f"python3.{minor}"
    path.write_text(f"#!/bin/sh\necho {minor} {headers} {path}\n")
    path.chmod(0o755)
    return str(path)


def test_one_python_for_each_extension_module(script: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "none"))
    paths = {minor: fake_python(tmp_path, minor, headers=minor != 12) for minor in (10, 11, 12, 13, 14)}
    assert script["interpreters"]([]) == {"cp310": paths[10], "cp311": paths[11], "py312": paths[13]}
    other = tmp_path / "other"
    other.mkdir()
    named = fake_python(other, 12)
    assert script["interpreters"]([named])["py312"] == named


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_wheel_lists_its_files(script: dict[str, Any], tmp_path: Path, machine: str) -> None:
    folder = tmp_path / "wheel"
    (folder / "mlafix").mkdir(parents=True)
    (folder / "mlafix" / "x.py").write_text("1\n")
    script["add_metadata"]("mlafix-compiler", "cp310.py312", machine, folder)
    wheel = script["pack"](folder, "cp310.py312", machine, tmp_path)
    assert wheel.name.startswith("mlafix_compiler-") and wheel.name.endswith(f"-cp310.py312-none-linux_{machine}.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (info,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
        record = dict(line.split(",")[:2] for line in archive.read(f"{info}/RECORD").decode().splitlines())
        assert set(record) == set(names)
        digest = base64.urlsafe_b64encode(hashlib.sha256(b"1\n").digest()).rstrip(b"=").decode()
        assert record["mlafix/x.py"] == f"sha256={digest}"
        assert f"Tag: cp310-none-linux_{machine}\nTag: py312-none-linux_{machine}\n" in archive.read(f"{info}/WHEEL").decode()
        metadata = archive.read(f"{info}/METADATA").decode()
    version = info.split("-")[1].removesuffix(".dist")
    assert f"Requires-Dist: mlafix=={version.removesuffix('.dist-info')}" in metadata
