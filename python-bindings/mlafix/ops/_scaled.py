"""Launches calls whose result has a format. Importing this module also imports the language."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from .._launcher.arguments import renames, wrong
from .._launcher.arrays import check_dtype, is_torch
from .._reports.explanation import CallExplanation
from ..dsl import bf16, f16, f32
from ..kernels.scaling import Scaling
from ._bases import LseBases
from ._launch import Binding, launch
from ._layouts import TILE_COLUMNS, Rows
from ._operators import FAKE
from ._types import Bound
from .formats import FORMATS, How, OutFormat, Plain
from .rope import Rope, check_rope

ROUNDINGS = {"bf16": bf16, "f16": f16, "f32": f32}


def _renamed(name: str) -> Any:
    """Returns a `launch` whose errors name the fields of a format and of `Rope`."""
    scales = "scale" if name == "Fp8" else "scales"
    return renames(out_scales=f"{name}.{scales}", global_scale=f"{name}.global_scale", first_row=f"{name}.first_row",
                   positions="Rope.positions", cos_sin="Rope.table")(launch)


_LAUNCHES = {kind: _renamed(name) for name, kind in FORMATS.items()} | {Plain: _renamed("")}
_PLAIN = Plain()

_OF_SIDES = ("merge.merge_attn_states", "merge.merge_masked_states")


def _in_kernels(name: str) -> Any:
    """Returns a member of a module of `mlafix.kernels`, such as "rows.clear_padding"."""
    module, _, inside = name.partition(".")
    return getattr(importlib.import_module(f"..kernels.{module}", __package__), inside)


@functools.lru_cache(maxsize=None)
def _kernel(name: str, how: How, bases: LseBases, count: str, bound: int, copies: bool) -> Any:
    """Returns a kernel of `mlafix.kernels`. A `bound` above 0 is compiled into it as the value of `count`."""
    scaling = Scaling(**{**how._asdict(), "rounding": ROUNDINGS[how.rounding]})
    made = _in_kernels(name)(scaling, *([True] if copies else []))
    chosen = bases.bindings(sides=name in _OF_SIDES)
    bindings = ({count: bound} if bound else {}) | chosen | ({"G": 1} if how.is_static or how.is_plain or how.joined > 1 else {})
    return made.specialize(**bindings) if bindings else made


def launch_formatted(name: str, out_format: OutFormat | None, rows: Rows, out: Any, arguments: tuple[Any, ...], like: Any, stream: Any,
           bases: LseBases, *, count: str = "", bound: int = 0, copies: bool = False, dtype: Any = None, rope: Rope | None = None, gate: Any = None) -> None:
    """Launches a kernel of `mlafix.kernels` that stores rows in a format. If `stream` is a `Binding` or FAKE, binds or
    checks the call instead.

    Args:
        name: the module and the name of the kernel's family in `mlafix.kernels`, such as "rows.norm_rows". Only this
            module is imported.
        out_format: the format in which `out` is stored. None: rows are stored in the dtype of `out`.
        rows: the shape of the result without a format, `[…, H, D]`.
        out: the result.
        arguments: the kernel's arguments after those that the format, `rope` and `gate` give.
        like: an input. Without a format, the result has the dtype `dtype` or, if that is None, the dtype of this input.
        bases: the bases of the lses.
        count, bound: the name of a dim that counts states, and the value to which the kernel binds this dim; 0 binds no
            value. Callers bind the value that the library's kernel binds for the same call, since the order of a merge,
            and so its bits, depend on it.
        copies: for a merge of two states, True if tokens past the context are copied.
        rope: turns rows before they are stored.
        gate: a number for each head or each element. Rows are multiplied by its sigmoid before they are turned.
    """
    out_format = out_format or _PLAIN
    shape, fits = getattr(out, "shape", None), out_format.stored_shape(rows)
    if out_format.is_fp4 and shape is not None and tuple(shape) != fits:
        raise wrong("out", f"shape {list(fits)}, two elements of f4e2m1 in a byte", tuple(shape))
    where: tuple[Any, ...]
    where, how, padding = out_format.place(rows, like, dtype)
    if rope is not None:
        check_rope(rope)
        placed = rope.place(rows)
        rope.check_groups(rows[-1], 1 if how.is_static or how.is_plain or how.joined > 1 else where[0].shape[-1])
        how = how._replace(turned=placed.turned, first=placed.first, halves=not rope.interleaved)
        where = (*where, *placed.arguments)
    if gate is not None:
        how = how._replace(gate=_kind_of_gate(gate, rows))
        where = (*where, gate)
    kernel = _kernel(name, how, bases, count, bound, copies)
    _LAUNCHES[type(out_format)](kernel, (out, *where, *arguments), stream)
    if padding is not None and stream is not FAKE:
        _clear(*padding, stream)


def _kind_of_gate(gate: Any, rows: Rows) -> str:
    """Returns the kind of a gate: "head" for one number per head, "row" for one per element of rows `[…, H, D]`. Raises
    ArgumentError for other shapes."""
    check_dtype(gate, "gate")
    left = len(rows) - len(gate.shape)
    if left not in (0, 1):
        raise wrong("gate", f"shape {list(rows)}, or {list(rows[:-1])} for one number a head", list(gate.shape))
    return "head" if left else "row"


def _clear(scales: Any, height: int, first: int, rows: int, columns: int, stream: Any) -> None:
    """Clears the padding of tiles, if there is any, in a launch after the one that writes the scales. If `stream` is a
    `Binding`, binds both calls instead."""
    last = first + rows
    end = -(-last // height) * height
    if not rows or (columns % TILE_COLUMNS == 0 and last == end):
        return
    kernel = _in_kernels("rows.clear_padding" if height == 128 else "rows.clear_padding_8x4")
    arguments = (scales, first, last, end, columns)
    if type(stream) is not Binding:
        launch(kernel, arguments, stream)
        return
    stream.bound = _Both(stream.bound, kernel.bind(*arguments), arguments)


class _Both:
    """A bound call that writes scales, together with the bound call that clears their padding."""

    def __init__(self, call: Bound, clear: Bound, arguments: tuple[Any, ...]) -> None:
        self._call, self._clear, self._arguments = call, clear, arguments

    def __call__(self, stream: Any = None) -> None:
        self._call(stream)
        self._clear(stream)

    @property
    def launch_info(self) -> Any:
        return self._call.launch_info  # type: ignore[attr-defined]

    def explain(self) -> CallExplanation:
        return self._call.explain()

    def set_pointers(self, args: Any) -> None:
        self._call.set_pointers(args)
        scales = args[1]  # Argument 1 of every kernel here is the array of scales.
        address = scales if isinstance(scales, int) else scales.data_ptr() if is_torch(scales) else scales.ctypes.data
        self._clear.set_pointers((address, *self._arguments[1:]))
