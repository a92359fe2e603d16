"""mlafix: a small language and compiler for the kernels around attention.

This module only re-exports the public names of the package.
"""

from . import ops
from ._debug.debug import DebugReport, Fault, Printed
from ._files.warmup import Availability, CompileKey, available, compile_keys, warmup
from ._launcher.kernel import Kernel
from ._launcher.unit import UnitKernel
from ._reports.explanation import CallExplanation, CodeVersion
from ._runtime import PeerGroup, PeerTensors, Unit, __version__
from .dsl import Base, DType, In, InOut, List, Out, Peers, inline, kernel
from .errors import (
    ArgumentError,
    CacheWarning,
    CompileError,
    CompileWarning,
    DebugWarning,
    DriverError,
    Error,
    RankError,
    UnitError,
)
from .ops import register_torch_operators

__all__ = [
    "ArgumentError",
    "Availability",
    "Base",
    "CacheWarning",
    "CallExplanation",
    "CodeVersion",
    "CompileError",
    "CompileKey",
    "CompileWarning",
    "DType",
    "DebugReport",
    "DebugWarning",
    "DriverError",
    "Error",
    "Fault",
    "In",
    "InOut",
    "Kernel",
    "List",
    "Out",
    "PeerGroup",
    "PeerTensors",
    "Peers",
    "Printed",
    "RankError",
    "Unit",
    "UnitError",
    "UnitKernel",
    "__version__",
    "available",
    "compile_keys",
    "inline",
    "kernel",
    "ops",
    "register_torch_operators",
    "warmup",
]
