"""Fixtures for the tests of the Python package: units compiled for the CPU, dispatchers, devices and random numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from devices import Device, all_devices

from mlafix import _runtime, library


@pytest.fixture(scope="session")
def compile_unit(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Returns a function that compiles a unit for the CPU once and returns its path, as in
    compile_unit("merge_attn_states", "H=4,D=64,T=bf16", ...)."""
    folder = tmp_path_factory.mktemp("units")
    made: dict[tuple[str, ...], Path] = {}

    def build(kernel: str, *bindings: str) -> Path:
        key = (kernel, *bindings)
        if key not in made:
            from sources import KERNELS  # skips the test without the compiler

            from mlafix import _compiler

            bound = [dict(item.split("=") for item in text.split(",")) for text in bindings]
            source = (KERNELS / f"{kernel}.mlir").read_text()
            made[key] = folder / f"{kernel}-{len(made)}.mlafix"
            made[key].write_bytes(_compiler.compile(source, kernel, specializations=bound, targets=["cpu"]))
        return made[key]

    return build


@pytest.fixture(scope="session")
def merge_dispatcher(compile_unit: Callable[..., Path]) -> Callable[..., _runtime.Dispatcher]:
    """Returns a function that makes a dispatcher of merge_attn_states, as in merge_dispatcher(views=…). The dispatcher
    compiles for the CPU."""

    def resolve(bindings: dict[str, str], device_type: int, ordinal: int) -> _runtime.Unit:
        assert (device_type, ordinal) == (1, 0)
        return _runtime.Unit.load(compile_unit("merge_attn_states", ",".join(f"{k}={v}" for k, v in bindings.items())))

    def build(**options: object) -> _runtime.Dispatcher:
        return _runtime.Dispatcher("merge_attn_states", library.signature("merge_attn_states"), options.pop("resolve", resolve), **options)

    return build


@pytest.fixture(scope="session", params=all_devices(), ids=lambda device: device.name)
def device(request: pytest.FixtureRequest) -> Device:
    """Runs a test with numpy and, if there is a GPU, with torch on the GPU. These devices suffice for tests of what a
    kernel computes. Tests of functions that take the arrays of several libraries use `library_device`."""
    made: Device = request.param
    return made


@pytest.fixture(scope="session", params=all_devices(with_both_hosts=True), ids=lambda device: device.name)
def library_device(request: pytest.FixtureRequest) -> Device:
    """Runs a test on the devices of `device`, and with torch on the CPU."""
    made: Device = request.param
    return made


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Returns random numbers that depend only on the test's name."""
    return np.random.default_rng(list(request.node.nodeid.encode()))
