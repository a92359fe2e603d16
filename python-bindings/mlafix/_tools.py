"""The programs `mlafix-opt` and `mlafix-run` of an installation from wheels. The code of both is in the compiler's
library."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

from ._files import toolchain


def _start(tool: str) -> int:
    """Runs a tool, "opt" or "run", with this process's arguments, and returns its exit status."""
    module = toolchain.compiler_file()
    if module is None:
        print(f"mlafix-{tool}: error: expected the compiler, this installation has none ({toolchain.INSTALL})", file=sys.stderr)
        return 1
    # Restores the default signal handlers, as in a C program. Python's handlers ignore a closed pipe, and handle Ctrl-C
    # only between instructions of Python.
    for number in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    start = ctypes.CDLL(str(Path(module).with_name("libmlafix_compiler.so")))[f"mlafix_{tool}_main"]
    words = [os.fsencode(word) for word in (f"mlafix-{tool}", *sys.argv[1:])]
    return int(start(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None)))


def opt() -> int:
    """Runs the program mlafix-opt, which runs passes, or compiles kernels to units, PTX, IR or a signature."""
    return _start("opt")


def run() -> int:
    """Runs the program mlafix-run, which runs a kernel of a unit or of a source on .npy files."""
    return _start("run")
