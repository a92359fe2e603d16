"""Every environment variable that the Python package reads. docs/Troubleshooting.md also lists those of the runtime and
the compiler.

A variable is read at each use, so that a test or a program may change it.

=====================  ==========================================================================================
MLAFIX_CACHE_DIR       folder of compiled kernels; default: $XDG_CACHE_HOME/mlafix, else ~/.cache/mlafix
MLAFIX_CACHE           0: keep nothing on disk, and look for nothing there
MLAFIX_PREBUILT        folders of units compiled ahead, separated by ":"; files are named as in the cache, and only read
MLAFIX_STRICT          1: never compile: a kernel that is neither prebuilt nor cached raises UnitError
MLAFIX_DEBUG           1: each call of a kernel is debugged (Kernel.debug), and each fault is a DebugWarning
MLAFIX_PRINT_REPRO     1: a call of a kernel is written as a script to ./mlafix-repro; values: with the values of its arrays
MLAFIX_LINE_INFO       1: GPU code names the lines of the kernels' source, for profilers
MLAFIX_PTXAS           path of the ptxas that assembles PTX; the compiler reads this variable, too
MLAFIX_NVJITLINK       path of the libnvJitLink that assembles PTX; the compiler reads this variable, too
MLAFIX_VLLM            what the plugin replaces in vLLM: 1, names of functions, compare, count; docs/Engines.md
MLAFIX_SGLANG          what the plugin replaces in SGLang; values as for MLAFIX_VLLM
MLAFIX_WATCH           what to watch in vLLM and SGLang: 1, seams, every=N, poison, repair; docs/Watch.md
MLAFIX_WATCH_REPORT    path of a file to which each report of a watch is appended as a line of JSON
=====================  ==========================================================================================
"""

from __future__ import annotations

import os
from pathlib import Path


def _flag(name: str, default: bool) -> bool:
    value = os.environ.get(name, "").strip().lower()
    if value in ("", "0", "off", "false", "no"):
        return default if value == "" else False
    return True


def cache_dir() -> Path | None:
    """Returns the folder of compiled kernels. Returns None if MLAFIX_CACHE forbids keeping files on disk, or if there
    is no home folder."""
    if not _flag("MLAFIX_CACHE", True):
        return None
    named = os.environ.get("MLAFIX_CACHE_DIR")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):
        return Path(base) / "mlafix"
    try:
        return Path.home() / ".cache" / "mlafix"
    except RuntimeError:
        return None


def prebuilt_dirs() -> list[Path]:
    """Returns the folders of units that were compiled ahead, in search order."""
    return [Path(folder) for folder in os.environ.get("MLAFIX_PREBUILT", "").split(os.pathsep) if folder]


def strict() -> bool:
    """True if compiling on first use is forbidden."""
    return _flag("MLAFIX_STRICT", False)


def debug() -> bool:
    """True if calls of kernels are debugged, to warn of faults."""
    return _flag("MLAFIX_DEBUG", False)


def print_repro() -> str:
    """Returns "1" if calls of kernels are written as scripts, "values" if the scripts include the arrays' values, else
    ""."""
    value = os.environ.get("MLAFIX_PRINT_REPRO", "").strip().lower()
    return "values" if value == "values" else "1" if _flag("MLAFIX_PRINT_REPRO", False) else ""


def line_info() -> bool:
    """True if GPU code should name the source line of each instruction."""
    return _flag("MLAFIX_LINE_INFO", False)


def engine(name: str) -> str:
    """Returns the value of MLAFIX_VLLM or MLAFIX_SGLANG for the engine `name`, "vllm" or "sglang"; "" if it is not
    set."""
    return os.environ.get(f"MLAFIX_{name.upper()}", "")


def watch() -> str:
    """Returns the value of MLAFIX_WATCH; "" if it is not set."""
    return os.environ.get("MLAFIX_WATCH", "")


def watch_report() -> str:
    """Returns the path of the file to which reports of a watch are appended; "" if there is none."""
    return os.environ.get("MLAFIX_WATCH_REPORT", "")


_forbidden = False


def forbid_compiling(forbids: bool = True) -> None:
    """Sets MLAFIX_STRICT=1 in this process, unless MLAFIX_STRICT is set already. If `forbids` is False, undoes an
    earlier call."""
    global _forbidden
    if forbids and "MLAFIX_STRICT" not in os.environ:
        os.environ["MLAFIX_STRICT"], _forbidden = "1", True
    elif not forbids and _forbidden:
        os.environ.pop("MLAFIX_STRICT", None)
        _forbidden = False


def assemblers() -> tuple[str, str]:
    """Returns the values of MLAFIX_PTXAS and MLAFIX_NVJITLINK; "" for each that is not set."""
    return ptxas(), os.environ.get("MLAFIX_NVJITLINK", "")


def ptxas() -> str:
    """Returns the path of the ptxas to use, or "" if the compiler searches for one."""
    return os.environ.get("MLAFIX_PTXAS", "")
