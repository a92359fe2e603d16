"""Types of the extension module mlafix._runtime: units, tensors, launches."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

__version__: str
ABI_VERSION: int
TARGETS: tuple[str, ...]  # all, in the order of include/mlafix/Targets.def: GPUs rising, then CPUs falling
EMISSIONS: tuple[str, ...]  # what the compiler's `emit` may be, in the order of include/mlafix/CompilerOptions.def
ASSEMBLERS: tuple[str, ...]  # what its `assembler` may be, likewise

# Flags of a call; see mlafix_launch_flags in include/mlafix/runtime.h.
DEEP_CHECKS: int
NO_DEPENDENT: int
ASSUME_DISJOINT: int
IGNORE_GRAD: int

GROUP_BYTES: int  # of a rank's workspace, without slots
MAX_RANKS: int

class PeerGroup:
    """The ranks that launch a collective kernel together: see mlafix_group in include/mlafix/runtime/group.h."""

    def __init__(self, rank: int, workspaces: Sequence[int], timeout: float = 10.0, failure: int = 0, slots: int = 0) -> None: ...
    @property
    def rank(self) -> int: ...
    @property
    def ranks(self) -> int: ...
    def check(self) -> None:
        """Raises RankError if a rank did not come to a launch that is complete; waits for nothing."""

class PeerTensors:
    """The tensors of all ranks in order, and on a GPU their group: what a kernel takes for an argument declared with Peers."""

    def __init__(self, tensors: Sequence[Any], group: PeerGroup | None = None) -> None: ...
    @property
    def tensors(self) -> tuple[Any, ...]: ...
    @property
    def group(self) -> PeerGroup | None: ...

class KernelInfo:
    """One kernel of a unit."""

    @property
    def name(self) -> str: ...
    @property
    def bindings(self) -> dict[str, str]: ...
    @property
    def args(self) -> list[dict[str, Any]]: ...
    @property
    def targets(self) -> list[str]: ...
    def report(self) -> dict[str, Any]: ...
    def code(self, device: str) -> dict[str, Any]:
        """Which code runs on the device: target, format, assembler, num_variants. Prepares it there."""

class Unit:
    """Compiled kernels for several targets, from a .mlafix file. A unit is code: load none that you do not trust.

    ``list(unit)`` has the names of its kernels, and ``unit["merge"]`` is the kernel of that name, a UnitKernel.
    """

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Unit:
        """Load a unit from a file. Touches no CUDA driver. Raises UnitError."""

    @staticmethod
    def from_bytes(data: bytes) -> Unit:
        """Load a unit from memory. Raises UnitError."""

    @property
    def kernels(self) -> list[KernelInfo]: ...
    @property
    def producer(self) -> str: ...
    @property
    def manifest(self) -> str: ...
    def __getitem__(self, name: str) -> Any: ...  # a mlafix.UnitKernel
    def __contains__(self, name: object) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def kernel(self, name: str, bindings: Mapping[str, object] | None = None) -> KernelInfo:
        """The kernel of that name; bindings choose among several. Raises UnitError if there is none, ArgumentError if
        several match."""

    def prepare(self, device: str) -> None:
        """Load the code on "cpu" or "cuda:N" now and not at the first launch. Raises UnitError, DriverError."""

class Bound:
    """A call that was checked once, to be launched many times."""

    def __call__(self, stream: object | None = None) -> None:
        """Launch on a CUDA stream; by default the current one of the tensors' framework. Raises DriverError."""

    def set_pointers(self, args: tuple[object, ...]) -> None:
        """Use the memory of other tensors, of the same dtypes, sizes and strides, from now on. Raises ArgumentError."""

    @property
    def launch_info(self) -> dict[str, Any]: ...

class NewTensor:
    def __init__(self, dtype: str = "", like: int = -1, order: Sequence[int] | None = None) -> None: ...

class SizeOf:
    def __init__(self, arg: int, dim: int) -> None: ...

class Dispatcher:
    def __init__(
        self,
        name: str,
        signature: str,
        resolve: Callable[[dict[str, str], int, int], Unit | KernelInfo],
        views: Mapping[str, Sequence[int]] | None = None,
        specialize: Sequence[str] | None = None,
    ) -> None: ...
    def __call__(self, args: tuple[object, ...], stream: object | None = None, flags: int = 0) -> None: ...
    def try_launch(self, args: tuple[object, ...], stream: object | None = None) -> tuple[Any, ...] | None: ...
    def bind(self, args: tuple[object, ...], flags: int = 0) -> Bound: ...
    def prepare(self, args: tuple[object, ...]) -> KernelInfo: ...
    @property
    def num_specializations(self) -> int: ...
    def watch(self, names: list[tuple[Any, ...]], changed: Callable[[], list[tuple[Any, ...]]]) -> None: ...
    def clear(self) -> None: ...

def device_target(device: str) -> str: ...
def cuda_device_count() -> int: ...
def share_lanes(
    lanes: int, pieces: int, threads: int, multiprocessors: int, *, most: int, chunk: int, least_threads: int, threads_per_sm: int
) -> tuple[int, int, int]: ...
