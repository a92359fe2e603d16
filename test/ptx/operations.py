"""Implements the PTX instructions: the effect of each on the threads that execute it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from . import arithmetic as exact
from .arithmetic import TYPES, Array
from .text import Address, Instruction, PtxError

if TYPE_CHECKING:
    from .machine import Blocks

_FLOATS = ("f16", "bf16", "f32", "f64")
_ROUNDINGS = ("rzi", "rni", "rmi", "rpi")
_POISON = 0xDEADBEEF


@lru_cache(maxsize=None)
def _number(text: str, kind: str) -> Any:
    """Parses an immediate operand."""
    dtype = TYPES[kind]
    if kind == "pred":
        return np.bool_(int(text, 0))
    if text.startswith(("0f", "0F")) and len(text) == 10:
        bits: Any = np.uint32(int(text[2:], 16))
    elif text.startswith(("0d", "0D")) and len(text) == 18:
        bits = np.uint64(int(text[2:], 16))
    else:
        value = int(text.rstrip("U"), 0)
        size = dtype.itemsize * 8
        bits = np.array(value & ((1 << size) - 1), f"uint{size}")[()]
    return np.asarray(bits).view(dtype)[()] if np.asarray(bits).dtype.itemsize == dtype.itemsize else dtype.type(np.asarray(bits).view(np.float32)[()])


class Threads:
    """A group of threads, and access to their registers."""

    def __init__(self, blocks: Blocks, chosen: Array) -> None:
        self.blocks, self.chosen = blocks, chosen

    def get(self, operand: object, kind: str) -> Array:
        """Returns the value of an operand in each thread. A register wider than `kind` gives its low bits."""
        blocks, dtype = self.blocks, TYPES[kind]
        assert isinstance(operand, str)
        if operand in blocks.registers or operand in blocks.special:
            held = blocks.registers.get(operand)
            value = (held if held is not None else blocks.special[operand])[self.chosen]
            if value.dtype == bool or kind == "pred":
                if value.dtype != bool or kind != "pred":
                    raise PtxError(f"{operand}: a predicate where a number is expected, or the reverse")
                return value
            if value.dtype.itemsize < dtype.itemsize:
                raise PtxError(f"{operand}: narrower than .{kind}")
            if value.dtype.itemsize > dtype.itemsize:
                value = value.astype(f"uint{dtype.itemsize * 8}")
            return value.view(dtype)
        if operand[0] in "0123456789-":
            return np.full(self.chosen.shape, _number(operand, kind), dtype)
        return np.full(self.chosen.shape, self.variable(operand), dtype)

    def variable(self, name: str) -> int:
        for table in (self.blocks.entry.shared, self.blocks.entry.local, self.blocks.entry.params):
            if name in table:
                return table[name][0]
        raise PtxError(f"{name}: a name that is not known")

    def put(self, operand: object, kind: str, value: Array) -> None:
        """Writes a register in each thread. A register may be wider than `kind`."""
        assert isinstance(operand, str)
        if operand == "_":
            return
        held = self.blocks.registers[operand]
        value = np.asarray(value)
        if held.dtype != bool:
            if value.dtype.itemsize < held.dtype.itemsize:
                sign = "int" if value.dtype.kind == "i" else "uint"
                value = value if value.dtype.kind in "iu" else value.view(f"uint{value.dtype.itemsize * 8}")
                value = value.astype(f"{sign}{held.dtype.itemsize * 8}")
            value = np.ascontiguousarray(value).view(held.dtype)
        held[self.chosen] = value

    def address(self, operand: object) -> Array:
        assert isinstance(operand, Address)
        registers = self.blocks.registers
        base = operand.base
        if base in registers and registers[base].dtype == np.uint32:
            found = self.get(base, "u32").astype(np.uint64)
        elif base[0].isdigit():
            found = np.full(self.chosen.shape, int(base, 0), np.uint64)
        else:
            found = self.get(base, "u64")
        return found + np.uint64(operand.offset & (1 << 64) - 1)


Operation = Callable[[Threads, Instruction], None]
OPERATIONS: dict[str, Operation] = {}


def operation(*names: str) -> Callable[[Operation], Operation]:
    def add(function: Operation) -> Operation:
        for name in names:
            OPERATIONS[name] = function
        return function

    return add


def _floats(one: Instruction, values: list[Array]) -> list[Array]:
    if "ftz" not in one.parts:
        return values
    if any(value.dtype != np.float32 for value in values):
        raise PtxError(f"{'.'.join(one.parts)}: expected .ftz with .f32")
    return [exact.flush(value) for value in values]


def _end(threads: Threads, one: Instruction, kind: str, value: Array) -> None:
    value = np.asarray(value)
    if kind in _FLOATS:
        value = exact.canonical(kind, value.astype(TYPES[kind]))
        if "sat" in one.parts:
            value = np.where(np.isnan(value), 0, np.clip(value, 0, 1)).astype(TYPES[kind])
        if "ftz" in one.parts:
            value = exact.flush(value)
    threads.put(one.operands[0], kind, value)


def _unpacked(threads: Threads, operand: object, element: str) -> list[Array]:
    """Returns the lower and the upper half of a 32-bit operand, as 16-bit elements."""
    word = threads.get(operand, "b32")
    return [np.ascontiguousarray(half.astype(np.uint16)).view(TYPES[element]) for half in (word & np.uint32(0xFFFF), word >> np.uint32(16))]


def _packed(halves: list[Array]) -> Array:
    low, high = (np.ascontiguousarray(half).view(np.uint16).astype(np.uint32) for half in halves)
    return low | high << np.uint32(16)


def _wide(function: Callable[..., Array]) -> Callable[..., Array]:
    """Returns `function` as an operation on 16-bit floats. It computes in f64, which has more than twice the bits of
    these floats, so rounding its result again to 16 bits gives the nearest number."""

    def wide(*values: Array) -> Array:
        return exact.cast(np.asarray(function(*(value.astype(np.float64) for value in values))), values[0].dtype)

    return wide


def _smaller(a: Array, b: Array, take: Any, keeps: bool) -> Array:
    """Returns the minimum or the maximum (`take`) of floats, where -0 is below +0. With `keeps`, NaN propagates.
    Without it, NaN in one operand gives the other operand."""
    made = np.where(np.isnan(a), b, np.where(np.isnan(b), a, take(a, b)))
    zeros = (a == 0) & (b == 0)
    negative = np.signbit(a) | np.signbit(b) if take is np.minimum else np.signbit(a) & np.signbit(b)
    made = np.where(zeros, np.where(negative, -0.0, 0.0).astype(a.dtype), made)
    return np.where(np.isnan(a) | np.isnan(b), np.array(np.nan, a.dtype), made).astype(a.dtype) if keeps else made.astype(a.dtype)


def _compute(name: str, one: Instruction, kind: str) -> Callable[..., Array]:
    isFloat = kind in _FLOATS
    if name == "fma":
        return exact.fma if kind != "f64" else (lambda a, b, c: a * b + c)
    if name in ("min", "max"):
        take = np.minimum if name == "min" else np.maximum
        if isFloat:
            return lambda a, b: _smaller(a, b, take, "NaN" in one.parts)
        return take
    simple: dict[str, Any] = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
                              "abs": np.abs, "neg": lambda a: -a}  # fmt: skip
    if name == "div":
        return (lambda a, b: a / b) if isFloat else (lambda a, b: exact.divide(a, b))
    return simple[name] if not isFloat or kind in ("f32", "f64") or name in ("abs", "neg") else _wide(simple[name])


@operation("add", "sub", "mul", "div", "fma", "min", "max", "abs", "neg")
def _arithmetic(threads: Threads, one: Instruction) -> None:
    name, kind = one.parts[0], one.parts[-1]
    if kind in ("f16x2", "bf16x2"):
        element = kind[:-2]
        halves = [_unpacked(threads, operand, element) for operand in one.operands[1:]]
        made = [exact.canonical(element, np.asarray(_compute(name, one, element)(*_floats(one, list(values))))) for values in zip(*halves)]
        threads.put(one.operands[0], "b32", _packed(made))
        return
    values = [threads.get(operand, kind) for operand in one.operands[1:]]
    if kind in _FLOATS:
        made = _compute(name, one, kind)(*_floats(one, values))
        if name in ("abs", "neg"):  # abs and neg only change the sign bit
            bits = values[0].view(f"uint{values[0].dtype.itemsize * 8}")
            sign = np.array(1, bits.dtype) << np.array(bits.dtype.itemsize * 8 - 1, bits.dtype)
            # the sign of a negated NaN is unspecified, so a NaN of f32 or f64 keeps its bits here
            negated = np.where(np.isnan(values[0].view(kind.replace("f", "float"))) if kind in ("f32", "f64") else False, bits, bits ^ sign)
            made = (bits & ~sign if name == "abs" else negated).view(values[0].dtype)
            threads.put(one.operands[0], kind, made)
            return
        _end(threads, one, kind, made)
    elif name == "mul" and "wide" in one.parts:
        double = f"{kind[0]}{int(kind[1:]) * 2}"
        threads.put(one.operands[0], double, values[0].astype(TYPES[double]) * values[1].astype(TYPES[double]))
    elif name == "mul" and "hi" in one.parts:
        threads.put(one.operands[0], kind, exact.high_product(*values))
    else:
        threads.put(one.operands[0], kind, _compute(name, one, kind)(*values))


@operation("mad")
def _multiply_add(threads: Threads, one: Instruction) -> None:
    kind = one.parts[-1]
    a, b = (threads.get(operand, kind) for operand in one.operands[1:3])
    double = f"{kind[0]}{int(kind[1:]) * 2}" if "wide" in one.parts else kind
    c = threads.get(one.operands[3], double)
    product = exact.high_product(a, b) if "hi" in one.parts else a.astype(TYPES[double]) * b.astype(TYPES[double])
    threads.put(one.operands[0], double, product + c)


@operation("rem")
def _remainder(threads: Threads, one: Instruction) -> None:
    kind = one.parts[-1]
    a, b = (threads.get(operand, kind) for operand in one.operands[1:])
    threads.put(one.operands[0], kind, np.where(b == 0, a, a - exact.divide(a, b) * b).astype(a.dtype))


@operation("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh")
def _approximation(threads: Threads, one: Instruction) -> None:
    kind = one.parts[-1]
    value = _floats(one, [threads.get(one.operands[1], kind)])[0]
    _end(threads, one, kind, exact.approximate(one.parts[0], value))


@operation("and", "or", "xor", "not", "cnot")
def _logic(threads: Threads, one: Instruction) -> None:
    kind = one.parts[-1]
    values = [threads.get(operand, kind) for operand in one.operands[1:]]
    functions: dict[str, Any] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert}
    threads.put(one.operands[0], kind, functions[one.parts[0]](*values))


@operation("shl", "shr")
def _shift(threads: Threads, one: Instruction) -> None:
    kind = one.parts[-1]
    value, amount = threads.get(one.operands[1], kind), threads.get(one.operands[2], "u32")
    threads.put(one.operands[0], kind, exact.shift(one.parts[0], value, amount))


@operation("shf")
def _funnel(threads: Threads, one: Instruction) -> None:
    low, high, amount = (threads.get(operand, "u32").astype(np.uint64) for operand in one.operands[1:])
    amount = amount & np.uint64(31) if "wrap" in one.parts else np.minimum(amount, 32)
    both = low | high << np.uint64(32)
    made = both >> amount if one.parts[1] == "r" else (both << amount) >> np.uint64(32)
    threads.put(one.operands[0], "b32", made.astype(np.uint32))


@operation("clz", "popc")
def _count(threads: Threads, one: Instruction) -> None:
    value = threads.get(one.operands[1], one.parts[-1])
    threads.put(one.operands[0], "u32", exact.leading_zeros(value) if one.parts[0] == "clz" else exact.ones(value))


@operation("bfe")
def _extract(threads: Threads, one: Instruction) -> None:
    kind = one.parts[-1]
    value, start, length = threads.get(one.operands[1], kind), threads.get(one.operands[2], "u32"), threads.get(one.operands[3], "u32")
    threads.put(one.operands[0], kind, exact.extract(value, start & np.uint32(255), length & np.uint32(255)))


@operation("bfi")
def _insert(threads: Threads, one: Instruction) -> None:
    kind = one.parts[-1]
    value, into = (threads.get(operand, kind) for operand in one.operands[1:3])
    start, length = (threads.get(operand, "u32") & np.uint32(255) for operand in one.operands[3:5])
    mask = exact.shift("shl", ~exact.shift("shl", ~np.zeros_like(value), length), start)
    threads.put(one.operands[0], kind, exact.shift("shl", value, start) & mask | into & ~mask)


@operation("copysign")
def _copy_sign(threads: Threads, one: Instruction) -> None:
    """Combines the sign of the first operand with all other bits of the second."""
    kind = one.parts[-1].replace("f", "b")
    sign, value = (threads.get(operand, kind) for operand in one.operands[1:])
    top = np.array(1, value.dtype) << np.array(value.dtype.itemsize * 8 - 1, value.dtype)
    threads.put(one.operands[0], kind, sign & top | value & ~top)


@operation("testp")
def _test(threads: Threads, one: Instruction) -> None:
    value = threads.get(one.operands[1], one.parts[-1])
    tests: dict[str, Any] = {"finite": np.isfinite, "infinite": np.isinf, "notanumber": np.isnan, "number": lambda x: ~np.isnan(x)}
    threads.put(one.operands[0], "pred", tests[one.parts[1]](value))


@operation("prmt")
def _permute(threads: Threads, one: Instruction) -> None:
    threads.put(one.operands[0], "b32", exact.permute(*(threads.get(operand, "b32") for operand in one.operands[1:])))


@operation("lop3")
def _three(threads: Threads, one: Instruction) -> None:
    values = [threads.get(operand, "b32") for operand in one.operands[1:4]]
    threads.put(one.operands[0], "b32", exact.three_inputs(*values, int(str(one.operands[4]), 0)))


_ORDERS: dict[str, Any] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip


def _ordered(name: str, kind: str, a: Array, b: Array) -> Array:
    if kind not in _FLOATS:
        return np.asarray(_ORDERS[name](a, b))
    unordered = np.isnan(a) | np.isnan(b)
    if name in ("num", "nan"):
        return unordered if name == "nan" else ~unordered
    if name.endswith("u"):
        return np.asarray(_ORDERS[name[:-1]](a, b) | unordered)
    return np.asarray(_ORDERS[name](a, b) & ~unordered)


@operation("setp")
def _compare(threads: Threads, one: Instruction) -> None:
    name, kind = one.parts[1], one.parts[-1]
    if kind.endswith("x2"):
        halves = [_unpacked(threads, operand, kind[:-2]) for operand in one.operands[1:3]]
        assert isinstance(one.operands[0], tuple)
        for register, a, b in zip(one.operands[0], *halves):
            threads.put(register, "pred", _ordered(name, kind[:-2], a, b))
        return
    a, b = (threads.get(operand, kind) for operand in one.operands[1:3])
    a, b = _floats(one, [a, b])
    made = _ordered(name, kind, a, b)
    if len(one.parts) > 3 and one.parts[2] in ("and", "or", "xor"):
        joins: dict[str, Any] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
        made = joins[one.parts[2]](made, threads.get(one.operands[3], "pred"))
    threads.put(one.operands[0], "pred", made)


@operation("selp")
def _select(threads: Threads, one: Instruction) -> None:
    kind = f"b{TYPES[one.parts[-1]].itemsize * 8}"
    a, b = (threads.get(operand, kind) for operand in one.operands[1:3])
    threads.put(one.operands[0], kind, np.where(threads.get(one.operands[3], "pred"), a, b))
