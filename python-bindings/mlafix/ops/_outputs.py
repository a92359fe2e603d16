"""Allocates the outputs of merge functions, and launches merges whose result has a format."""

from __future__ import annotations

from typing import Any

from .._forks import whole
from .._launcher.arguments import wrong
from .._launcher.arrays import check_dtype, dtype_name, empty, empty_lse, empty_rows, lse_as, rows_of
from ._bases import LseBases
from .formats import Fp8, OutFormat, check_format

ROWS = ("n", "H", "D")


def outputs(like: Any, name: str, out: Any, out_lse: Any, return_lse: bool, out_format: OutFormat | None = None, *,
            shape: tuple[Any, ...] | None = None, lse_layout: str = "nh", dtype: str | None = None) -> tuple[Any, Any]:
    """Returns `(out, out_lse)`: the arrays that were passed, or new ones on the device of an input.

    Args:
        like: the input. Errors call it `name`.
        out: the array that was passed. If None, `out` is allocated in the format or, without a format, with the dtype
            `dtype`.
        out_lse: the array that was passed. If None, `out_lse` is allocated if `return_lse`.
        shape: the shape `[…, H, D]` of the rows. None: the shape `[n, H, D]` of `like`.
        lse_layout: "nh" or "hn".
        dtype: the dtype of a new `out`, if `shape` is given and `out_format` is not. None: the dtype of `like`.
    """
    if out_format is not None:
        check_format(out_format)
    if out is None and out_format is None and shape is None:
        out = empty_rows(like, name, ROWS)
    elif out is None:
        if dtype is None and hasattr(like, "dtype"):
            check_dtype(like, name)
        rows = tuple(rows_of(like, name, ROWS) if shape is None else shape)
        out = empty(like, rows, dtype) if out_format is None else out_format.empty(like, rows)
    if out_lse is None and return_lse:
        if shape is None:
            out_lse = empty_lse(like, name, lse_layout)
        else:
            *lead, rows, heads, _ = shape
            out_lse = empty(like, (*lead, heads, rows) if lse_layout == "hn" else (*lead, rows, heads), "f32")
    return out, out_lse


def out_dtype_name(out_dtype: Any, out: Any, out_format: OutFormat | None) -> str | None:
    """Returns mlafix's name of `out_dtype`, or None if that is None. Raises ArgumentError if the dtype differs from
    that of `out` or does not fit the format."""
    if out_dtype is None:
        return None
    name = dtype_name(out_dtype)
    if out_format is None and out is not None and name != (held := dtype_name(out.dtype)):
        raise wrong("out_dtype", f"{held}, the dtype of out, or None", name)
    if type(out_format) is Fp8 and name != "f8e4m3fn":
        raise wrong("out_dtype", "f8e4m3fn or None with Fp8", name)
    return name


def launch_in(out_format: OutFormat | None, kernel: str, rows: tuple[Any, ...], out: Any, arguments: tuple[Any, ...], like: Any, name: str,
              bases: LseBases, stream: Any, **more: Any) -> None:
    """Launches a kernel whose result has a format or is rotated. If `stream` is a `Binding` or FAKE, binds or checks
    the call instead.

    `name` is the name of the input `like` in errors. `more` are further arguments of `_scaled.launch_formatted`.
    """
    check_dtype(like, name)  # Without this check, the kernel would be compiled for any dtype.
    whole("mlafix.ops._scaled")
    from . import _scaled  # also imports the language

    _scaled.launch_formatted(kernel, out_format, tuple(rows), out, arguments, like, stream, bases, **more)


def transposed(lses: tuple[Any, ...], layout: str, wanted: str) -> list[Any]:
    """Returns views of lses, over the same memory, in the layout `wanted`."""
    return [lse_as(lse, layout, wanted) for lse in lses]
