"""Records the calls that torch sees."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode


@contextmanager
def seen_by_torch() -> Iterator[list[str]]:
    """Yields a list of the operations that torch's dispatcher gets in the block, by name and in order. The operations
    run."""
    seen: list[str] = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Watch():
        yield seen
