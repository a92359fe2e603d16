"""Tests a folder for Hugging Face's `kernels`: compares its functions with f64, and loads it with the package `kernels`
if that is installed."""

from __future__ import annotations

import importlib.util
import json
import os
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tvm_ffi")

from mlafix.__main__ import main  # noqa: E402
from mlafix.engines import hub  # noqa: E402

LIBRARIES = {name: os.environ[f"MLAFIX_TEST_{variable}"] for name, variable in
             (("rmsnorm", "RMSNORM"), ("apply_rope", "ROPE"), ("merge_attn_states", "MERGE"))}  # fmt: skip


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    assert main(["hub-kernels", *(f"{name}={path}" for name, path in LIBRARIES.items()), "--backend", "cpu", "-o", str(tmp_path)]) == 0
    return tmp_path


def check(package: Any) -> None:
    """Checks the package's functions, with outputs that contain NaN before the call."""
    random = np.random.default_rng(3)
    x, weight = random.normal(size=(5, 8)), random.normal(size=8)
    out = torch.full((5, 8), torch.nan)
    got = package.rmsnorm(torch.tensor(x).float(), torch.tensor(weight).float(), 1e-5, out=out)
    want = x / np.sqrt((x.astype(np.float32) ** 2).mean(1, keepdims=True, dtype=np.float64) + 1e-5) * weight
    assert got is out and np.allclose(out.numpy(), want, rtol=2e-6, atol=1e-6)
    angles, positions = random.normal(size=(7, 4)), np.array([6, 0, 3])
    heads = random.normal(size=(3, 2, 8)).astype(np.float32)
    query, key = torch.tensor(heads), torch.tensor(-heads)
    package.apply_rope(query, key, torch.tensor(positions), torch.tensor(np.concatenate([np.cos(angles), np.sin(angles)], 1)).float())
    a, b = heads[..., :4].astype(np.float64), heads[..., 4:].astype(np.float64)
    c, s = np.cos(angles)[positions][:, None], np.sin(angles)[positions][:, None]
    turned = np.concatenate([a * c - b * s, b * c + a * s], -1)
    assert np.allclose(query.numpy(), turned, atol=1e-6) and np.allclose(key.numpy(), -turned, atol=1e-6)
    rows, lses = torch.tensor(random.normal(size=(2, 3, 2, 8))).float(), torch.tensor(random.normal(size=(2, 2, 3))).float()
    rows[0, 1], lses[0, :, 1] = torch.nan, -torch.inf
    lses[:, :, 2] = -torch.inf
    out, lse = torch.full((3, 2, 8), torch.nan), torch.full((2, 3), torch.nan)
    package.merge_attn_states(rows[0], lses[0], rows[1], lses[1], out=out, out_lse=lse)
    weights = torch.softmax(lses[:, :, 0].double(), 0)
    assert torch.allclose(out[0].double(), (weights[..., None] * rows[:, 0].double()).sum(0), atol=1e-6)
    assert torch.equal(out[1], rows[1, 1]) and torch.equal(lse[:, 1], lses[1, :, 1]) and (out[2] == 0).all() and torch.isneginf(lse[:, 2]).all()


def test_the_package_of_a_variant(repository: Path) -> None:
    variant = repository / "build" / hub.variant_of("cpu")
    spec = importlib.util.spec_from_file_location("mlafix_hub_variant", variant / "__init__.py")
    assert spec is not None and spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    check(module)
    assert json.loads((variant / "metadata.json").read_text())["backend"] == {"type": "cpu"}


def test_kernels_loads_it(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    try:
        metadata.version("kernels")
    except metadata.PackageNotFoundError:
        pytest.skip("the package kernels is not installed")
    import kernels

    check(kernels.get_local_kernel(repository, backend="cpu"))


def test_what_is_no_library_of_these_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in ((["softmax=x.so", "--backend", "cpu"], "expected KERNEL=FILE.so with KERNEL one of rmsnorm, apply_rope, merge_attn_states, got softmax"),
                            (["rmsnorm=x.so", "--backend", "cuda"], '--backend: expected cpu or a CUDA version as in cu130, got "cuda"'),
                            (["rmsnorm=x.so", "--backend", "cpu"], "x.so")):  # fmt: skip
        assert main(["hub-kernels", *arguments, "-o", str(tmp_path)]) == 1
        assert said in capsys.readouterr().err
