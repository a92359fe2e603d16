"""Writes an HTML page that explains a kernel: ``python -m mlafix explain``.

The page needs no network. It shows the source, with each line beside the operations and instructions that it became; a
picture of the layout; the code versions and the guards that choose them; the geometry, bytes and time of launches with
sizes that the caller chooses; and the proofs about the kernel.
"""

from .facts import Facts, facts_of_kernel, facts_of_unit
from .page import write_page

__all__ = ["Facts", "facts_of_kernel", "facts_of_unit", "write_page"]
