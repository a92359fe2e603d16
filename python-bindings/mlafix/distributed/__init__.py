"""Merges the partial attention states that the ranks of a group have for the same rows: see docs/Distributed.md.

Importing this module imports torch.
"""

from ._reducer import Reducer

__all__ = ["Reducer"]
