#!/usr/bin/env python3
"""Checks that the code of a kernel stays within bounds for each of several bindings of its dims.

    code_size.py --tool mlafix-opt --max-ptx N --max-object N FILE [BINDINGS...]

Compiles the kernel in FILE with each of BINDINGS ("D=33,E=2048"), for sm_90 to PTX and for the x86-64 baseline to an object, and
prints the number of PTX instructions and the size of the object in bytes. Exit code: 0 all within the bounds, 1 not, 2 a failing
compiler.
"""

from __future__ import annotations

import argparse
import subprocess
import sys


def compile_to(tool: str, file: str, bindings: str, target: str, emit: str) -> bytes:
    command = [tool, file, f"--target={target}", f"--emit={emit}", "-o", "-"]
    run = subprocess.run([*command, f"--specialize={bindings}"] if bindings else command, capture_output=True)
    if run.returncode != 0:
        sys.stderr.write(run.stderr.decode())
        sys.exit(2)
    return run.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--max-ptx", type=int, required=True)
    parser.add_argument("--max-object", type=int, required=True)
    parser.add_argument("file")
    parser.add_argument("bindings", nargs="*", default=[""])
    options = parser.parse_args()
    status = 0
    for bindings in options.bindings:
        ptx = compile_to(options.tool, options.file, bindings, "sm_90", "ptx")
        instructions = sum(line.endswith(b";") and not line.startswith(b"\t.") for line in ptx.splitlines())
        size = len(compile_to(options.tool, options.file, bindings, "x86-64", "object"))
        fits = instructions <= options.max_ptx and size <= options.max_object
        print(f"{bindings}: {instructions} instructions of PTX, an object of {size} bytes{'' if fits else ': too much'}")
        status |= not fits
    return status


if __name__ == "__main__":
    sys.exit(main())
