"""Compiles variants ahead into the package's `units` folder, under the names that mlafix.cache looks for.

    make_units.py MLAFIX_OPT KERNELS OUT TARGETS KERNEL:BINDINGS...

TARGETS are comma-separated; "cpu" stands for x86-64-v4 and x86-64-v3. Units that are there already are left alone, others dropped.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "mlafix"))
import _keys  # noqa: E402


def main(opt: str, kernels: str, out: str, targets: str, *wanted: str) -> None:
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    keep: set[str] = set()
    for request in wanted:
        kernel, _, bindings = request.partition(":")
        path = Path(kernels) / f"{kernel}.mlir"
        bound = dict(item.split("=", 1) for item in bindings.split(","))
        for target in targets.replace("cpu", "x86-64-v4,x86-64-v3").split(","):
            name = _keys.variant_file(kernel, path.read_text(encoding="utf-8"), bound, target)
            keep.add(name)
            # The name says nothing of the compiler, so a unit older than it is made anew.
            made = folder / name
            if not made.exists() or made.stat().st_mtime < Path(opt).stat().st_mtime:
                command = [opt, str(path), f"--specialize={bindings}", f"--target={target}", "--emit=unit", "-o", str(made)]
                subprocess.run(command, check=True)
    for old in folder.glob("*.mlafix"):
        if old.name not in keep:
            old.unlink()


if __name__ == "__main__":
    main(*sys.argv[1:])
