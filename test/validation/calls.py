"""Defines the calls that the proofs are about: calls of the library's kernels that merge states."""

from __future__ import annotations

import functools
import json
import struct
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from symbolic import Pointer, parse

ROOT = Path(__file__).resolve().parents[2]
TARGET = "sm_90"


@dataclass(frozen=True)
class Call:
    """A call of a kernel that merges states. Its batch has one token (n = 1) and H = 16 heads. The proofs look at
    element 0 of the row of the first head.

    Attributes:
        states: (payload, lse) of each state, as (argument, element) pairs.
        out, lse: the arguments that hold the result.
        sizes: the sizes of the dims with lower-case names.
        scalars: the values of scalar arguments.
        integers: the elements of integer tensors, as (argument, elements) pairs.
        same: (argument, other) pairs: `argument` is the same tensor as `other`.
        absent: optional arguments that are omitted.
        is_slow: True if the solver takes half a minute.
    """

    kernel: str
    states: tuple[tuple[tuple[str, int], tuple[str, int]], ...]
    out: str = "out"
    lse: str = "out_lse"
    bindings: str = "H=16,D=128,T=f32"
    sizes: tuple[tuple[str, int], ...] = ()
    scalars: tuple[tuple[str, int], ...] = ()
    integers: tuple[tuple[str, tuple[int, ...]], ...] = ()
    same: tuple[tuple[str, str], ...] = ()
    absent: tuple[str, ...] = ()
    note: str = ""
    is_slow: bool = False

    def __str__(self) -> str:
        return self.kernel + (f"-{self.note}" if self.note else "")


def _parts(payload: str, lse: str, count: int, row: int, step: int) -> tuple:
    """Returns `count` consecutive states in one pair of tensors. Their payloads are `row` elements apart, and their lses
    `step` elements."""
    return tuple(((payload, i * row), (lse, i * step)) for i in range(count))


_TWO = ((("prefix", 0), ("prefix_lse", 0)), (("suffix", 0), ("suffix_lse", 0)))
_SLOTS = tuple(f"{name}{i}" for i in range(2, 8) for name in "vs")
_HEADS = 16 * 128
CALLS = [
    Call("merge_attn_states", _TWO, scalars=(("context_rows", 1),)),
    Call("merge_attn_states", _TWO[1:], scalars=(("context_rows", 0),), note="past_context"),
    Call("merge_attn_states", _TWO, scalars=(("context_rows", 1),), same=(("suffix", "out"), ("suffix_lse", "out_lse")), note="in_place"),
    Call("merge_attn_states_copy", _TWO, scalars=(("context_rows", 1),)),
    Call("merge_state_in_place", ((("v", 0), ("s", 0)), (("v_other", 0), ("s_other", 0))), out="v", lse="s", absent=("mask",)),
    Call("merge_states_list", ((("v0", 0), ("s0", 0)), (("v1", 0), ("s1", 0))), absent=_SLOTS),
    Call("merge_states_list", tuple(((f"v{i}", 0), (f"s{i}", 0)) for i in range(3)), absent=_SLOTS[2:], note="of_three"),
    Call("merge_states", _parts("v", "s", 2, _HEADS, 16), sizes=(("k", 2),)),
    Call("merge_states", _parts("v", "s", 3, _HEADS, 16), sizes=(("k", 3),), note="of_three", is_slow=True),
    Call("combine_split_kv", _parts("partial", "partial_lse", 2, _HEADS, 16), bindings="H=16,D=128,O=f32", sizes=(("s", 2),)),
    Call("merge_states_ragged", _parts("v", "s", 2, _HEADS, 16), sizes=(("nnz", 2), ("n1", 2)), integers=(("indptr", (0, 2)),)),
]  # fmt: skip


@functools.cache
def compiled(compiler: str, kernel: str, bindings: str) -> tuple[str, dict, list]:
    """Returns the optimised LLVM IR of a kernel, and two parts of the unit's manifest: the code version KERNEL_any
    and the kernel's arguments."""
    source = ROOT / "kernels" / f"{kernel}.mlir"
    options = [f"--specialize={bindings}", f"--target={TARGET}"]
    text = subprocess.run([compiler, source, *options, "--emit=llvm"], check=True, capture_output=True, text=True).stdout
    unit = subprocess.run([compiler, source, *options, "--assembler=none"], check=True, capture_output=True).stdout
    (size,) = struct.unpack_from("<Q", unit, 24)
    found = json.loads(unit[64 : 64 + size])["kernels"][0]
    variant = next(v for v in found["code"][0]["variants"] if v["entry"] == f"{kernel}_any")
    return text, variant, found["args"]


@dataclass
class Program:
    """The program of a call and its arguments, for the thread that computes element 0 of row 0."""

    function: object
    arguments: list
    registers: dict[str, int] = field(default_factory=dict)
    integers: dict[tuple[str, int], int] = field(default_factory=dict)


def program(compiler: str, call: Call, text: str = "") -> Program:
    """Returns the program of `call`. If `text` is not empty, it is LLVM IR that replaces the compiler's output."""
    made, variant, args = compiled(compiler, call.kernel, call.bindings)
    sizes = {"n": 1, "b": 1, "l": 1, **dict(call.sizes)}
    scalars, same = dict(call.scalars), dict(call.same)

    def shape(argument: dict) -> list[int]:
        return [sizes[dim] if size < 0 else size for dim, size in zip(argument["dims"], argument["shape"], strict=True)]

    def value(param: dict) -> object:
        if param["kind"] in ("local", "lines"):
            return 1
        argument = args[param["arg"]]
        name = argument["name"]
        if param["kind"] == "pointer":
            return Pointer("" if name in call.absent else same.get(name, name))
        if param["kind"] == "size":
            return shape(argument)[param["dim"]]
        if param["kind"] == "stride":
            stride = 1
            for size in shape(argument)[param["dim"] + 1 :]:
                stride *= size
            return stride
        return scalars[name]

    threads = variant["geometry"]["threads"]
    registers = {"tid.x": 0, "ntid.x": threads, "ctaid.x": 0, "nctaid.x": 1}
    integers = {(name, 4 * i): element for name, elements in call.integers for i, element in enumerate(elements)}
    return Program(parse(text or made, variant["entry"]), [value(p) for p in variant["params"]], registers, integers)
