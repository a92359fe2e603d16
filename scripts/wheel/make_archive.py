"""Compiles the kernels that a wheel carries, and packs them into an archive (mlafix/_files/archive.py).

    make_archive.py OUT UNITS TARGETS [--dims 64,128] [--dtypes bf16,f16] [--jobs N] [--kept DIR]

The built package must be on the Python path. OUT is the archive. UNITS is a folder that keeps the units between runs;
units that are older than the compiler are compiled again. TARGETS are comma-separated: "cpu" stands for every level of
x86-64, "gpus" for PTX ("sm_75+") and one server GPU of each generation, "all" for both. All GPUs of the same major
version run the machine code of such a server GPU. "sm_90+" is PTX for sm_90 and later GPUs. "aarch64" belongs to none
of these groups. The calls of wheel_calls.py determine the units, and which of them have machine code. All of them have
PTX. The units leave H to the launch. --dims and --dtypes select some of the units. --jobs units are compiled at a time,
by default one per core.

--kept: a folder UNITS of another machine. Units that are in this folder are not compiled. The name of a unit's file
depends on the text of the kernel, the bindings, and the target. To check that the same compiler made the units in the
folder, one unit of each kernel for each target is compiled here and compared. Units for GPUs do not depend on the host,
so one folder serves all architectures.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import alike
import wheel_calls

import mlafix
from mlafix import _runtime
from mlafix._files import archive, keys, toolchain

_HEADER, _ALIGNMENT = 64, 64
_FNV_BASIS, _FNV_PRIME, _U64 = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1
# Dims that occur only in the grid. The launch gives their sizes. All other dims are parts of rows.
_OPEN = ("H",)
# Kernels with this prefix in their name run only on GPUs: their ranks store into each other's memory.
_GPUS_ALONE = "push_"


class Wanted(NamedTuple):
    """A unit to compile: the kernel, its bindings, and the function of wheel_calls whose calls need it."""

    variants: Any
    bindings: tuple[tuple[str, str], ...]
    calls: Any

    @property
    def name(self) -> str:
        return f"{self.variants.kernel}:{','.join(f'{name}={value}' for name, value in self.bindings)}"

    def compile(self, target: str) -> bytes:
        """Compiles the whole unit for one target."""
        unit: bytes = self.variants._compile(dict(self.bindings), target.removesuffix(archive.AND_LATER))
        return unit


def wanted(dims: Sequence[int], dtypes: Sequence[str]) -> list[Wanted]:
    """Returns the distinct units that the wheel's calls need. The units leave H, optional arguments and numbers of
    states to the launch."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], Wanted] = {}
    for calls in (wheel_calls.of_most_models, wheel_calls.with_formats, wheel_calls.rare):
        for key in mlafix.compile_keys(calls(dims, dtypes)):
            if not key._variants.identity:
                raise ValueError(f"expected kernels of mlafix.kernels that say what they were made with, got {key}")
            bound = {name: value for name, value in key.bindings.items() if value not in ("present", "absent") and not name.islower()}
            bound.update({name: "any" for name in _OPEN if name in bound})
            one = Wanted(key._variants, tuple(sorted(bound.items())), calls)
            found.setdefault((key._variants.identity, one.bindings), one)
    return sorted(found.values(), key=lambda one: (one.variants.kernel, one.bindings))


# One server GPU of each generation; all GPUs of the same major version run its machine code. _WITH_FP8 are those with
# fp8. All GPUs run PTX.
_CUBINS = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")
_WITH_FP8 = _CUBINS[2:]
_PTX = "sm_75"
# Targets whose code every CPU of the architecture runs.
_BASELINES = ("x86-64", "aarch64")


def expand(targets: str) -> list[str]:
    """Returns the targets that `targets` names. Groups are replaced by their members."""
    cpus = [name for name in _runtime.TARGETS if name.startswith("x86-64")]
    gpus = [*_CUBINS, _PTX + archive.AND_LATER]
    groups = {"cpu": cpus, "gpus": gpus, "all": [*gpus, *cpus]}
    return [name for target in targets.split(",") for name in groups.get(target, [target])]


def is_for(one: Wanted, target: str) -> bool:
    """True if the archive has the unit's code for a target."""
    if target.endswith(archive.AND_LATER):
        return True
    is_of_most = one.calls is wheel_calls.of_most_models
    if target.startswith("sm_"):
        return is_of_most or (one.calls is wheel_calls.with_formats and target in _WITH_FP8)
    return (is_of_most or target in _BASELINES) and not one.variants.kernel.startswith(_GPUS_ALONE)


def checksum(unit: bytes) -> int:
    value = _FNV_BASIS
    for byte in unit:
        value = (value ^ byte) * _FNV_PRIME & _U64
    return value


def _manifest_of(unit: bytes) -> Any:
    return json.loads(unit[_HEADER : _HEADER + int.from_bytes(unit[24:32], "little")])


def lean(unit: bytes, unwanted: str = "ptx") -> bytes:
    """Returns a unit without the parts that the wheel stores elsewhere or does not need: declarations, proofs, and the
    images in the format `unwanted`."""
    manifest = _manifest_of(unit)
    images = []
    for kernel in manifest["kernels"]:
        kernel.pop("declaration", None)
        kernel.pop("proofs", None)
        for code in kernel["code"]:
            kept = [image for image in code["images"] if image["format"] != unwanted] or code["images"]
            code["images"] = kept
            images += [(image, unit[image["offset"] : image["offset"] + image["size"]]) for image in kept]
    # The offsets of images depend on the length of the manifest, which contains the offsets. So the length is that of a
    # manifest in which every offset has as many digits as the size of the original unit. Spaces fill the rest.
    place = len(str(len(unit)))
    for image, _ in images:
        image["offset"] = int("9" * place)
    end = _HEADER + len(json.dumps(manifest, separators=(",", ":")).encode())
    body = b""
    begin = -(-end // _ALIGNMENT) * _ALIGNMENT
    for image, data in images:
        body += bytes(-len(body) % _ALIGNMENT)
        image["offset"] = begin + len(body)
        body += data
    text = json.dumps(manifest, separators=(",", ":")).encode()
    text += b" " * (end - _HEADER - len(text))
    head = unit[:16] + (begin + len(body)).to_bytes(8, "little") + len(text).to_bytes(8, "little")
    made = bytearray(head + bytes(8) + unit[40:_HEADER] + text + bytes(begin - end) + body)
    made[32:40] = checksum(made).to_bytes(8, "little")
    return bytes(made)


class Folders(NamedTuple):
    """The folders of units: the folder of this machine, and a folder from another machine or None."""

    made: Path
    kept: Path | None


def file_name(one: Wanted, target: str) -> str:
    return keys.unit_file_name(one.variants.kernel, one.variants.identity, dict(one.bindings), target.removesuffix(archive.AND_LATER))


def compiled(one: Wanted, target: str, folders: Folders) -> tuple[bytes, float]:
    """Returns the lean unit for one target, and the seconds that compiling it took. Stores a newly compiled unit whole,
    with PTX and machine code, in the folder `made`."""
    unwanted = "cubin" if target.endswith(archive.AND_LATER) else "ptx"
    path = folders.made / file_name(one, target)
    compiler = toolchain.compiler_file()
    assert compiler is not None
    if path.exists() and path.stat().st_mtime >= os.stat(compiler).st_mtime:
        return lean(path.read_bytes(), unwanted), 0.0
    if folders.kept and (folders.kept / path.name).exists():
        return lean((folders.kept / path.name).read_bytes(), unwanted), 0.0
    begin = time.monotonic()
    data = one.compile(target)
    part = path.with_suffix(f".{os.getpid()}")  # renaming makes the complete file appear at once
    part.write_bytes(data)
    part.replace(path)
    return lean(data, unwanted), time.monotonic() - begin


def _code(unit: bytes) -> list[bytes]:
    """Returns the compiler's output in a unit, without the output of the assembler, whose version may differ."""
    images = [image for kernel in _manifest_of(unit)["kernels"] for code in kernel["code"] for image in code["images"]]
    return [unit[image["offset"] : image["offset"] + image["size"]] for image in images if image["format"] != "cubin"]


def check_kept(kept: Path, targets: Sequence[str], pool: ProcessPoolExecutor) -> None:
    """Raises SystemExit if units in `kept` are not from this compiler. Tries one unit of each kernel and target."""
    for target in targets:
        there = [number for number, one in enumerate(_units) if is_for(one, target) and (kept / file_name(one, target)).exists()]
        tried = {_units[number].variants.identity: number for number in there}
        wrong = next(filter(None, pool.map(_difference_at, ((number, target, kept) for number in tried.values()))), None)
        if wrong:
            raise SystemExit(wrong)
        print(f"{target}: {len(there)} units kept, {len(tried)} of them tried", flush=True)


def _difference_at(job: tuple[int, str, Path]) -> str:
    """Compiles one unit and compares it with the unit in the folder `kept`. Returns "" if both are the same, else an
    error message."""
    number, target, kept = job
    one = _units[number]
    path = kept / file_name(one, target)
    if _code(one.compile(target)) == _code(path.read_bytes()):
        return ""
    return f"{path}: expected what this compiler makes of {one.name} for {target}, got something else"


# The list of units. Workers are forked when it is complete, and get indices of its elements.
_units: list[Wanted] = []


def _compiled_at(job: tuple[int, str, Folders]) -> tuple[bytes, float]:
    number, target, folders = job
    try:
        return compiled(_units[number], target, folders)
    except mlafix.Error as error:
        raise RuntimeError(f"{_units[number].name} for {target}: {error}") from None


def block_milliseconds(target: str) -> float:
    """Returns the milliseconds that a first call may spend on decompression (docs/Experiments.md, "Blocks of an
    archive"). The limit is higher for a GPU, since a first call spends more time in the GPU's driver anyway. It is
    highest for PTX, which the driver has to compile."""
    if target.endswith(archive.AND_LATER):
        return 48.0
    return 6.0 if target.startswith("sm_") else 3.0 if target.startswith("x86-64-v") else 4.0


def pack(out: Path, folders: Folders, targets: Sequence[str], jobs: int) -> None:
    folders.made.mkdir(parents=True, exist_ok=True)
    declarations = {one.variants.identity: declaration(one) for one in _units}
    units: dict[str, list[list[archive.Unit]]] = {}
    with ProcessPoolExecutor(jobs) as pool:
        if folders.kept:
            check_kept(folders.kept, targets, pool)
        for target in targets:
            begin = time.monotonic()
            chosen = [number for number, one in enumerate(_units) if is_for(one, target)]
            made = list(pool.map(_compiled_at, ((number, target, folders) for number in chosen), chunksize=4))
            found = [(_units[number].variants.identity, bound(data), data) for number, (data, _) in zip(chosen, made)]
            blocks = alike.sorted_into_blocks([data for _, _, data in found], block_milliseconds(target))
            units[target] = [[found[number] for number in block] for block in blocks]
            print(f"{target}: {len(made)} units, {sum(len(data) for data, _ in made) / 2**20:.1f} MiB, {sum(took for _, took in made):.0f} s of processors, "
                  f"{time.monotonic() - begin:.0f} s", flush=True)
    archive.write(out, declarations, units)


def bound(unit: bytes) -> dict[str, str]:
    """Returns the bindings of a unit, including defaults. A call with another value than a default, such as another
    base, needs another unit."""
    (kernel,) = _manifest_of(unit)["kernels"]
    return {name: str(value) for name, value in kernel["bindings"].items()}


def declaration(one: Wanted) -> Any:
    """Returns a kernel's arguments and names in the form of docs/UnitFormat.md."""
    whole = getattr(one.variants, "_whole", None)
    signature = whole.signature if whole is not None else json.loads(mlafix.library.signature(one.variants.kernel))
    return {name: signature[name] for name in ("args", "names")}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("units", type=Path)
    parser.add_argument("targets")
    parser.add_argument("--dims", default="all")
    parser.add_argument("--dtypes", default=",".join(wheel_calls.DTYPES))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--kept", type=Path)
    options = parser.parse_args()
    begin = time.monotonic()
    dims = wheel_calls.DIMS if options.dims == "all" else [int(dim) for dim in options.dims.split(",")]
    _units.extend(wanted(dims, options.dtypes.split(",")))
    print(f"{len(_units)} kernels and bindings, found in {time.monotonic() - begin:.0f} s", flush=True)
    pack(options.out, Folders(options.units, options.kept), expand(options.targets), options.jobs)
    print(f"{options.out}: {options.out.stat().st_size / 2**20:.2f} MiB")


if __name__ == "__main__":
    main()
