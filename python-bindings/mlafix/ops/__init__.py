"""The kernel library as functions, for numpy arrays, torch tensors and whatever else has `__dlpack__`.

Each function has a `bind`, which checks and packs a call once to launch it many times. A module's `__all__` lists its
functions; docs/ops has a page on each module, made of the docstrings.
"""

import sys

from . import blank, checks, formats, merge, merge_many, merge_mapped, metadata, rope, rows, tokens
from . import drop_ins as drop_ins  # also registers the operators of drop_ins
from ._launch import register_torch_operators
from ._types import Array, Base, Bases, Bound, LseLayout, Stream
from .blank import *
from .checks import *
from .formats import *
from .formats import OutFormat
from .merge import *
from .merge_many import *
from .merge_mapped import *
from .metadata import *
from .rope import *
from .rows import *
from .tokens import *

__all__ = ["Array", "Base", "Bases", "Bound", "LseLayout", "OutFormat", "Stream"]
__all__ += merge.__all__
__all__ += merge_many.__all__
__all__ += merge_mapped.__all__
__all__ += formats.__all__
__all__ += blank.__all__
__all__ += checks.__all__
__all__ += metadata.__all__
__all__ += rows.__all__
__all__ += tokens.__all__
__all__ += rope.__all__

# If torch is not loaded yet, the operators of torch are registered when a function gets the first tensor, since
# importing torch takes seconds.
if sys.modules.get("torch") is not None:
    register_torch_operators()
