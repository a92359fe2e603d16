"""Every environment variable that the Python package reads; docs/Troubleshooting.md lists all.

Each is read at each use, so that a test or a program may change it.

=====================  ==========================================================================================
MLAFIX_CACHE_DIR       folder of compiled kernels; default: $XDG_CACHE_HOME/mlafix, else ~/.cache/mlafix
MLAFIX_CACHE           0: keep nothing on disk, and look for nothing there
MLAFIX_PREBUILT        folders (separated by ":") of units compiled ahead, laid out as the cache is; only read
MLAFIX_STRICT          1: never compile: a kernel that is neither prebuilt nor cached raises UnitError
MLAFIX_DEBUG           1: calls of kernels are watched (Kernel.debug), and each fault is a DebugWarning
MLAFIX_PRINT_REPRO     1: a call of a kernel is written as a script of its own, in ./mlafix-repro; values: with its values
MLAFIX_LINE_INFO       1: GPU code names the lines of the kernels' source, for profilers
MLAFIX_PTXAS           the ptxas that assembles; the compiler reads it too, and says where it looks otherwise
MLAFIX_NVJITLINK       the libnvJitLink that assembles; likewise
MLAFIX_VLLM            what the plugin replaces in vLLM: 1, names of functions, compare, count; docs/Engines.md
MLAFIX_SGLANG          the same for SGLang
MLAFIX_WATCH           what is watched in vLLM and SGLang: 1, seams, every=N, poison, repair; docs/Watch.md
MLAFIX_WATCH_REPORT    a file that each report of a watch is appended to, as a line of JSON
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
    """Folder of compiled kernels. None if MLAFIX_CACHE forbids keeping files on disk, or if there is no home folder."""
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
    """Folders of units that were compiled ahead, in search order."""
    return [Path(folder) for folder in os.environ.get("MLAFIX_PREBUILT", "").split(os.pathsep) if folder]


def strict() -> bool:
    """True if compiling on first use is forbidden."""
    return _flag("MLAFIX_STRICT", False)


def debug() -> bool:
    """True if calls of kernels are watched."""
    return _flag("MLAFIX_DEBUG", False)


def print_repro() -> str:
    """"1" or "values" if calls of kernels are to be written as scripts, else ""."""
    value = os.environ.get("MLAFIX_PRINT_REPRO", "").strip().lower()
    return "values" if value == "values" else "1" if _flag("MLAFIX_PRINT_REPRO", False) else ""


def line_info() -> bool:
    """True if GPU code should name the source line of each instruction."""
    return _flag("MLAFIX_LINE_INFO", False)


def engine(name: str) -> str:
    """The request to the plugin of an engine, "vllm" or "sglang"; "" if there is none."""
    return os.environ.get(f"MLAFIX_{name.upper()}", "")


def watch() -> str:
    """The request to watch an engine; "" if there is none."""
    return os.environ.get("MLAFIX_WATCH", "")


def watch_report() -> str:
    """The file that reports of a watch are appended to; "" if none."""
    return os.environ.get("MLAFIX_WATCH_REPORT", "")


_forbidden = False


def forbid_compiling(forbids: bool = True) -> None:
    """Makes this process strict from here on, unless MLAFIX_STRICT was set by someone else; False takes that back."""
    global _forbidden
    if forbids and "MLAFIX_STRICT" not in os.environ:
        os.environ["MLAFIX_STRICT"], _forbidden = "1", True
    elif not forbids and _forbidden:
        os.environ.pop("MLAFIX_STRICT", None)
        _forbidden = False


def assemblers() -> tuple[str, str]:
    """The assembler that the user names: ptxas, nvJitLink; "" if none is named."""
    return ptxas(), os.environ.get("MLAFIX_NVJITLINK", "")


def ptxas() -> str:
    """The ptxas to use, or "" for whatever the compiler finds."""
    return os.environ.get("MLAFIX_PTXAS", "")
