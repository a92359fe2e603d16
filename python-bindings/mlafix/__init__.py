"""mlafix: a small language and compiler for the kernels around attention.

Everything public is re-exported here; nothing is defined here.
"""

from . import ops
from ._runtime import Unit, __version__
from .errors import ArgumentError, CompileError, DriverError, Error, UnitError
from ._warmup import warmup

__all__ = [
    "ArgumentError",
    "CompileError",
    "DriverError",
    "Error",
    "Unit",
    "UnitError",
    "__version__",
    "ops",
    "warmup",
]
