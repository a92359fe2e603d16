"""Describes the environment of an audit: versions and hardware."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, packages_distributions, version

import torch

from .._runtime import __version__
from .adapters import MODULES
from .cases import Adapter


def facts(adapter: Adapter) -> dict[str, str]:
    """Returns versions and hardware by name.

    For an adapter on a GPU, torch initialises CUDA in this process to read the GPU's name. A fork of a process with a
    CUDA context cannot use the GPU, so `Run` then runs later audits of closures in this process itself.
    """
    found = {"python": platform.python_version(), "torch": str(torch.__version__), "mlafix": __version__, "cpu": cpu_name()}
    if adapter.device != "cpu" and torch.cuda.is_available():
        found |= {"gpu": torch.cuda.get_device_name(), "cuda": str(torch.version.cuda)}
    package = package_of(getattr(adapter.call, "__module__", "") or "")
    if package not in ("mlafix", "torch", "__main__", ""):
        try:
            found["backend"] = f"{package} {version(package)}"
        except PackageNotFoundError:
            pass
    return found


def package_of(module: str) -> str:
    """Returns the distribution that contains `module`, the module of the backend. For an adapter of
    mlafix.audit.adapters, returns the distribution of the package that this adapter calls."""
    folder, _, name = module.rpartition(".")
    if folder == f"{__package__}.adapters":
        module = dict(MODULES).get(name, "")
    package = module.partition(".")[0]
    return packages_distributions().get(package, [package])[0]


def cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
        return names[0] if names else platform.machine()
    except OSError:
        return platform.machine()
