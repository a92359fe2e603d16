"""Assembled code has no instruction that its GPU refuses (refused.py). Tests the library's code, users' kernels, and
stores of bytes after maxima.

Random kernels are checked where they are compiled for GPUs (test/fuzz/kernels). No GPU is needed.
"""

from __future__ import annotations

import struct
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlafix
import narrow_stores
import refused
from devices import Device
from mlafix import _runtime
from numerics import BF16, F32

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")
ROOT = Path(__file__).resolve().parents[3]
CHIPS = [name for name in _runtime.TARGETS if name.startswith("sm_")]
# Each instruction as two words of 64 bits, as nvdisasm prints them. Only the .RELU forms are refused.
F2IP = {
    "F2IP.U8.F32.NTZ": (0x00000004FF047243, 0x000FE400000004FF),
    "F2IP.S8.F32.NTZ": (0x0000000A0B0A7243, 0x004FC800000014FF),
    "F2IP.S8.F32.TRUNC.NTZ": (0x0000000A0B0A7243, 0x004FC8000000D4FF),
    "F2IP.U8.F32.NTZ.RELU": (0x0000000A0B0A7243, 0x004FC80000000CFF),
    "F2IP.S8.F32.NTZ.RELU": (0x0000000A0B0A7243, 0x004FC80000001CFF),
    "F2IP.U8.F32.TRUNC.NTZ.RELU": (0x0000000609067243, 0x000FC8000000CCFF),
}


@pytest.fixture(scope="module", autouse=True)
def assembler(tmp_path_factory: pytest.TempPathFactory) -> None:
    unit = saved(tmp_path_factory.mktemp("probe"))((narrow_stores.rectified, {"D": 64, "T": "f32"}), "sm_90")
    if not any(True for _ in refused.cubins(unit)):
        pytest.skip("no assembler for GPUs: units have PTX alone")


def faults_of(compile_one: Callable[[Any, str], bytes], jobs: Sequence[tuple[Any, str]]) -> list[str]:
    """Compiles each (kernel, chip) job, two at a time. Returns descriptions of the refused instructions found, and of
    jobs without a cubin."""
    lock, faults = threading.Lock(), []

    def look(job: tuple[Any, str]) -> None:
        unit = compile_one(*job)
        found = [f"{job[1]}: {one}" for one in refused.search(unit)]
        if not any(True for _ in refused.cubins(unit)):
            found.append(f"{job}: expected a cubin, got none")
        with lock:
            faults.extend(found)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(look, jobs))
    return faults


def saved(folder: Path) -> Callable[[tuple[mlafix.Kernel, dict[str, object]], str], bytes]:
    def compile_one(job: tuple[mlafix.Kernel, dict[str, object]], chip: str) -> bytes:
        kernel, bindings = job
        path = folder / f"{kernel.name}.{chip}.{'.'.join(map(str, bindings.values()))}.mlafix"
        kernel.save(path, [chip], **bindings)
        return path.read_bytes()

    return compile_one


def stores_bytes(signature: Any) -> bool:
    return any(one["kind"] == "tensor" and one["access"] != "read" and one["dtype"].startswith(("u8", "i8", "f8", "f4", "bool")) for one in signature["args"])


@pytest.mark.parametrize("name", F2IP)
def test_the_list_is_found_in_a_cubin(tmp_path: Path, name: str) -> None:
    unit = saved(tmp_path)((narrow_stores.rectified, {"D": 64, "T": "f32"}), "sm_90")
    assert not refused.search(unit)
    (cubin,) = refused.cubins(unit)
    function, code = next(refused.functions(cubin))
    spoiled = unit.replace(code, code[:32] + struct.pack("<QQ", *F2IP[name]) + code[48:])
    expected = [(function, 32)] if name.endswith(".RELU") else []
    assert [(found.function, found.offset) for found in refused.search(spoiled)] == expected


def test_a_unit_with_cpu_code_only_has_nothing_to_refuse(tmp_path: Path) -> None:
    job = narrow_stores.rectified, {"D": 64, "T": "f32"}
    for target, instructions in (("cpu", False), ("sm_90", True)):
        path = tmp_path / f"{target}.mlafix"
        path.write_bytes(saved(tmp_path)(job, target))
        assert refused.main([str(path)]) == 0 and any(refused._contents(path)) == instructions


def test_a_unit_without_declarations_is_read(tmp_path: Path) -> None:
    unit = saved(tmp_path)((narrow_stores.rectified, {"D": 64, "T": "f32"}), "sm_90").replace(b'"declaration"', b'"undeclared_"')
    checksum = 0xCBF29CE484222325  # docs/UnitFormat.md
    for byte in unit[:32] + bytes(8) + unit[40:]:
        checksum = (checksum ^ byte) * 0x100000001B3 % (1 << 64)
    path = tmp_path / "plain.mlafix"
    path.write_bytes(unit[:32] + struct.pack("<Q", checksum) + unit[40:])
    with pytest.raises(mlafix.UnitError, match="how its kernels were declared"):
        mlafix.Unit.load(path)[narrow_stores.rectified.name]
    assert any(refused._contents(path)) and refused.main([str(path)]) == 0


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
def test_bytes_behind_maxima_for_every_chip(tmp_path: Path, dtype: str) -> None:
    jobs = [((kernel, {"D": 64, "T": dtype}), chip) for chip in CHIPS for kernel in narrow_stores.KERNELS]
    assert not faults_of(saved(tmp_path), jobs)


@pytest.mark.filterwarnings("ignore:expected every access:mlafix.errors.CompileWarning")
def test_users_kernels(tmp_path: Path) -> None:
    """ptxas may emit a refused instruction for a kernel that stores elements of 8 bits. Each such kernel of
    benchmarks/user_kernels.py is compiled for a third of the chips."""
    pytest.importorskip("torch", reason="the benchmark makes its tensors with torch")
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import user_kernels
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    sizes = {"D": 128, "G": 4, "H": 8, "K": 8, "E": 64, "V": 1000, "S": 16, "P": 16, "T": "bf16"}
    kernels = [value for value in vars(user_kernels).values() if isinstance(value, mlafix.Kernel) and stores_bytes(value.signature)]
    jobs = [((kernel, {name: sizes[name] for name in kernel.signature["names"] if name in sizes}), chip)
            for i, kernel in enumerate(kernels) for chip in CHIPS[i % 3 :: 3]]  # fmt: skip
    assert jobs
    assert not faults_of(saved(tmp_path), jobs)


def test_the_library() -> None:
    """Assembles one unit of each kernel in a wheel, for D = 128, bf16 and one chip. The chips from sm_89 on take turns
    from unit to unit. scripts/test-wheels checks the whole wheel."""
    folder = ROOT / "scripts" / "wheel"
    sys.path.insert(0, str(folder))
    make_archive = pytest.importorskip("make_archive", reason="the sources have no scripts")
    units = list({one.variants.kernel: one for one in make_archive.wanted([128], ["bf16"])}.values())
    with_fp8 = [chip for chip in CHIPS if int(chip.removeprefix("sm_")) >= 89]
    jobs = [(one, with_fp8[i % len(with_fp8)]) for i, one in enumerate(units)]
    assert len(jobs) > len(CHIPS)
    assert not faults_of(lambda one, chip: one.compile(chip), jobs)


@pytest.mark.parametrize("dtype", [F32, BF16], ids=["f32", "bf16"])
@pytest.mark.parametrize("size", [7, 64])
def test_values_behind_maxima(device: Device, dtype: Any, size: int, rng: np.random.Generator) -> None:
    x = (rng.normal(0, 90, (6, size))).astype(dtype)
    x[0, :7] = [np.nan, np.inf, -np.inf, -0.0, 0.5, 255.5, -0.5]
    wide = x.astype(np.float64)
    rectified = np.fmax(wide, 0)

    def as_byte(value: np.ndarray, least: int, most: int, round: Any = np.rint) -> np.ndarray:
        return np.clip(round(np.where(np.isnan(value), 0, value)), least, most).astype(np.int64)

    active = np.array([1, 0, 1, 0, 1, 0], np.int32)
    maximum = np.where(np.isnan(wide), wide, np.maximum(wide, 0))
    of_branch = np.where(active[:, None] > 0, maximum, wide)
    cases: list[tuple[Any, tuple[Any, ...], np.ndarray, np.ndarray]] = [
        (narrow_stores.rectified, (), as_byte(rectified, 0, 255), as_byte(rectified, -128, 127)),
        (narrow_stores.chosen, (), as_byte(np.where(wide > 0, wide, 0), 0, 255), as_byte(np.where(wide >= 0, wide * 0.5, 0), -128, 127)),
        (narrow_stores.whole_numbers, (), as_byte(rectified, 0, 255, np.trunc), np.maximum(as_byte(wide, -128, 127, np.trunc), 0)),
        (narrow_stores.of_a_branch, (active,), as_byte(of_branch, 0, 255), as_byte(np.fmax(of_branch.astype(F32) + np.float32(1), 0), -128, 127)),
    ]
    for kernel, others, want_y, want_z in cases:
        y, z = device.put(np.full((6, size), 0xA5, np.uint8)), device.put(np.full((6, size), -91, np.int8))
        kernel(y, z, device.put(x), *(device.put(one) for one in others))
        np.testing.assert_array_equal(device.get(y), want_y, err_msg=kernel.name)
        np.testing.assert_array_equal(device.get(z), want_z, err_msg=kernel.name)
