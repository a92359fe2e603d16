"""Defines the types in the signatures of this package."""

from __future__ import annotations

from typing import Any, Callable, Generic, Literal, ParamSpec, Protocol, Tuple, TypeVar, Union

from .._reports.explanation import CallExplanation

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Array(Protocol):
    """A `numpy.ndarray` (bf16 and fp8 by way of `ml_dtypes`), a `torch.Tensor`, or whatever else has `__dlpack__`.

    In docstrings `[n, H, D] T` means: n rows of H heads of D elements of a float type T, bf16, f16 or f32. Any strides
    are legal on every dimension but the last of a payload, which is contiguous (N12).
    """

    @property
    def shape(self) -> Any: ...

    @property
    def dtype(self) -> Any: ...

    def __dlpack__(self, **options: Any) -> Any: ...


DTypeLike = Any
"""A dtype: mlafix's name for it ("bf16"), numpy's name ("bfloat16"), or numpy's or torch's object."""

LseLayout = Literal["hn", "nh"]
"""The layout of a log-sum-exp: `"hn"` is `[H, n]` (vLLM), `"nh"` is `[n, H]` (SGLang, FlashInfer)."""

Base = Literal["e", "2"]
"""The base of a log-sum-exp: `"e"` (vLLM, SGLang, FlashAttention) or `"2"` (FlashInfer)."""

Bases = Union[Base, Tuple[Base, ...]]
"""The base of all log-sum-exps of a call, or a tuple with one base for each. The result's base comes last."""

QuantizeFrom = Literal["f32", "output"]
"""The values that are quantised: `"f32"` for values as they are computed, `"output"` for values rounded to the result's dtype first."""

Index = Any
"""An index of an array that gives a view: an integer, a slice, an Ellipsis, or a tuple of these and None (a new dim).
None alone: the whole array."""

Stream = Union[int, Any, None]
"""A CUDA stream: its handle as an int, a `torch.cuda.Stream` or another object that has one; None is torch's current
stream where the arrays are torch's, else the default stream. Nothing is waited for. Ignored on the CPU."""


class Bound(Protocol):
    """A call with its arguments checked and packed. `bound(stream)` launches it again, and `set_pointers` gives it new memory.
    `explain` lists the code versions and the reason for the chosen one."""

    def __call__(self, stream: Any = None) -> None: ...

    def set_pointers(self, args: Any) -> None: ...

    def explain(self) -> CallExplanation: ...


class Operation(Protocol, Generic[P, R_co]):
    """A public function. Its `bind` takes the same arguments except the stream, and returns a `Bound`."""

    bind: Callable[P, Bound]
    __name__: str

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
