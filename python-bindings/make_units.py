"""Compiles specialisations ahead into the package's `units` folder, under the names that mlafix.cache looks for.

    make_units.py MLAFIX_OPT KERNELS OUT TARGETS KERNEL:BINDINGS...

MLAFIX_OPT is the compiler, KERNELS the folder of the kernel library, and OUT the folder of the units. TARGETS are
comma-separated: "cpu" stands for every level of this machine's architecture, "gpu" for every GPU, and "all" for both.

Compiles units that are missing in OUT or older than the compiler, one per core at a time. Removes units from OUT that
were not requested. Fails if a kernel lacks a proof that kernels/proofs.txt lists.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "mlafix" / "_files"))
import keys  # noqa: E402


def expand(opt: str, targets: str) -> list[str]:
    """The names in `targets`, with "cpu", "gpu" and "all" replaced by the targets that they stand for."""
    listed = subprocess.run([opt, "--list-targets"], check=True, capture_output=True, text=True).stdout.split()
    gpus = [name for name in listed if name.startswith("sm_")]
    cpus = [name for name in listed if name.startswith(platform.machine().replace("_", "-"))]
    groups = {"cpu": cpus, "gpu": gpus, "all": [*gpus, *cpus]}
    return [name for target in targets.split(",") for name in groups.get(target, [target])]


def main(opt: str, kernels: str, out: str, targets: str, *wanted: str) -> None:
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    keep: set[str] = set()
    commands: list[list[str]] = []
    names = expand(opt, targets)
    for request in wanted:
        kernel, _, bindings = request.partition(":")
        path = Path(kernels) / f"{kernel}.mlir"
        bound = dict(item.split("=", 1) for item in bindings.split(",") if item)
        for target in names:
            name = keys.unit_file_name(kernel, path.read_text(encoding="utf-8"), bound, target)
            keep.add(name)
            # The file name does not depend on the compiler, so compile again if the unit is older than the compiler.
            made = folder / name
            if not made.exists() or made.stat().st_mtime < Path(opt).stat().st_mtime:
                choice = [f"--specialize={bindings}"] if bindings else []
                commands.append([opt, str(path), *choice, f"--target={target}", "--emit=unit", "-o", str(made)])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda command: subprocess.run(command, check=True), commands))
    for old in folder.glob("*.mlafix"):
        if old.name not in keep:
            old.unlink()
    if keep:
        check = Path(__file__).parents[1] / "scripts" / "proofs"
        command = [sys.executable, str(check), "--units", *(str(folder / name) for name in sorted(keep))]
        if subprocess.run(command).returncode:
            sys.exit("make_units: expected units that prove what kernels/proofs.txt says, got the above")


if __name__ == "__main__":
    main(*sys.argv[1:])
