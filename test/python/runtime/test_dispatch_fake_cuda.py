"""Calls on CUDA tensors without a GPU: a fake driver records what the dispatcher does (fake_cuda.c).

A process looks for its driver only once, so each test runs in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")
SHARED = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of the fake driver, libcuda.so.1."""
    folder = tmp_path_factory.mktemp("driver")
    command = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wno-unused-parameter", "-Werror", str(SHARED / "fake_cuda.c")]
    try:
        subprocess.run([*command, "-o", str(folder / "libcuda.so.1")], check=True)
    except FileNotFoundError:
        pytest.skip("needs a C compiler")
    return folder


PRELUDE = """
import ctypes
import sys
import mlafix
from mlafix import _runtime, library
from fake_cuda import Framework, Producer, launches, tensors

dispatch = library.viewed("merge_attn_states")._dispatch
args = tensors(Framework, (3, 16, 128))
"""


def run(driver: Path, code: str, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": f"{driver}:{os.environ.get('LD_LIBRARY_PATH', '')}",
        "PYTHONPATH": f"{SHARED}:{os.environ.get('PYTHONPATH', '')}",
        "MLAFIX_CACHE_DIR": str(tmp_path),
    }
    subprocess.run([sys.executable, "-W", "error", "-c", PRELUDE + code], env=environment, check=True)


def test_current_stream_of_the_tensors_framework(driver: Path, tmp_path: Path) -> None:
    run(
        driver,
        """
Framework.stream = 0x70
dispatch(args)
dispatch(args, 0x80)
class Stream:
    cuda_stream = 0x90
dispatch(args, Stream())
bound = dispatch.bind(args)
Framework.stream = 0xa0
bound()
bound(0xb0)
assert [launch.stream for launch in launches()] == [0x70, 0x80, 0x90, 0xa0, 0xb0], launches()
""",
        tmp_path,
    )


def test_code_for_the_device_on_the_device(driver: Path, tmp_path: Path) -> None:
    run(
        driver,
        """
assert _runtime.device_target("cuda:1") == "sm_90"
dispatch(args)
dispatch(tensors(Framework, (3, 16, 128), ordinal=1))
assert [launch.ordinal for launch in launches()] == [0, 1], launches()
assert dispatch.num_specializations == 2
""",
        tmp_path,
    )


def test_producers_are_told_the_stream(driver: Path, tmp_path: Path) -> None:
    run(
        driver,
        """
args = tensors(Producer, (3, 16, 128))
dispatch(args)
dispatch(args, 0x70)
assert [launch.stream for launch in launches()] == [0, 0x70]
assert args[0].streams == [1, 0x70], args[0].streams
""",
        tmp_path,
    )


def test_tensors_of_two_devices_are_refused(driver: Path, tmp_path: Path) -> None:
    run(
        driver,
        """
other = tensors(Framework, (3, 16, 128), ordinal=1)
try:
    dispatch((*args[:2], other[2], *args[3:]))
except mlafix.ArgumentError as error:
    assert 'argument "prefix": expected a tensor on cuda:0, as argument "out", got one on cuda:1' in str(error), error
else:
    raise AssertionError
assert not launches()
""",
        tmp_path,
    )


def test_what_the_driver_says_is_a_driver_error(driver: Path, tmp_path: Path) -> None:
    run(
        driver,
        """
dispatch(args)
ctypes.CDLL("libcuda.so.1").fake_fail_next_launch(700)
try:
    dispatch(args)
except mlafix.DriverError as error:
    assert "CUDA_ERROR_FAKE (700" in str(error), error
else:
    raise AssertionError
""",
        tmp_path,
    )


def test_a_call_is_explained_without_a_launch(driver: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run(
        driver,
        f"""
kernel = mlafix.Kernel.load({str(SHARED.parents[1] / "kernels" / "merge_attn_states.mlir")!r})
found = kernel.explain_call(*args)
assert found.target == "sm_90" and found.versions[0].chosen and found.blocks > 0 and found.threads > 0
assert found.bandwidth == 2 * 2619000000 * 5120 // 8
assert found.least_us == (found.bytes_read + found.bytes_written) / found.bandwidth * 1e6
suffix = Framework((3, 32, 128), 0)
suffix.managed.tensor.shape[1] = 16
print(kernel.explain_call(*args[:4], suffix, *args[5:]))
assert launches() == []
""",
        tmp_path,
    )
    text = capfd.readouterr().out
    assert 'merge_attn_states_dense  expected stride 2048 in dim 0 of "suffix", got 4096\n' in text
    assert "merge_attn_states_fast   chosen\n" in text and " at 3,352 GB/s" in text
