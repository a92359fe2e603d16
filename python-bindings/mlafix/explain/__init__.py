"""One page of HTML that explains a kernel: ``python -m mlafix explain``.

The page needs no network and holds: the source, with each line beside the operations and instructions that come of it;
the layout, as a picture; the code versions and the guards that choose them; the geometry, bytes and time of launches
with sizes of the caller's choice; what is proved of the kernel.
"""

from .facts import Facts, facts_of_kernel, facts_of_unit
from .page import write_page

__all__ = ["Facts", "facts_of_kernel", "facts_of_unit", "write_page"]
