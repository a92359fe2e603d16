"""The language of kernels in Python: see docs/Python.md.

``abs``, ``all``, ``any``, ``len``, ``max``, ``min``, ``print``, ``range``, ``round`` and ``sum`` are Python's own
functions. Inside a kernel, the language gives them a meaning of its own. This module exports them so that a kernel's
file can import all its words from here.
"""

from builtins import abs, len, print, range, round
from typing import TYPE_CHECKING, Any

from . import built_ins, functions, types
from .built_ins import *  # noqa: F403
from .decorator import kernel
from .functions import *  # noqa: F403
from .inline import inline
from .types import *  # noqa: F403

if TYPE_CHECKING:  # type checkers must accept arguments that only kernels pass: max(row, along=16)
    all: Any
    any: Any
    max: Any
    min: Any
    sum: Any
else:
    from builtins import all, any, max, min, sum

__all__ = ["abs", "all", "any", "inline", "kernel", "len", "max", "min", "print", "range", "round", "sum"]
__all__ += built_ins.__all__
__all__ += functions.__all__
__all__ += types.__all__
