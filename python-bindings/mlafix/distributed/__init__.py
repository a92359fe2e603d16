"""Partial attention states that the ranks of a group have of the same rows, merged: see docs/Distributed.md.

Importing this module imports torch.
"""

from ._reducer import Reducer

__all__ = ["Reducer"]
