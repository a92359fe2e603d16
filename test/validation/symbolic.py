"""Executes LLVM IR for one thread. Integers and addresses are numbers, floats are terms of a solver.

The call is concrete (the number of rows, the row, the strides, the aliases), but the contents of float tensors are
symbolic. A branch on floats is followed both ways, so the result is a list of paths, each with its conditions and its
stores.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import llvm_ir
from axioms import Approximations
from bitwuzla import Kind
from llvm_ir import Function, Instruction, Type, drop_attributes, float_bits, split, take_type
from solver import FORMATS, Floats


@dataclass(frozen=True)
class Pointer:
    """The address `offset` bytes after the start of the tensor `base`. The pointer is null if `base` is empty."""

    base: str
    offset: int = 0


@dataclass
class Path:
    """One path through the program: its conditions, its values and its stores."""

    block: str
    previous: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    conditions: list[object] = field(default_factory=list)
    stores: dict[tuple[str, int], object] = field(default_factory=dict)
    approximations: Approximations = field(kw_only=True)

    def fork(self, block: str, condition: object) -> Path:
        return Path(block, self.block, dict(self.values), [*self.conditions, condition], dict(self.stores), approximations=self.approximations.copy())


_SIGNED = {"sgt": lambda a, b: a > b, "sge": lambda a, b: a >= b, "slt": lambda a, b: a < b, "sle": lambda a, b: a <= b}
_UNSIGNED = {"ugt": _SIGNED["sgt"], "uge": _SIGNED["sge"], "ult": _SIGNED["slt"], "ule": _SIGNED["sle"]}
_EXTREMA = {"llvm.smax": "sge", "llvm.smin": "sle", "llvm.umax": "uge", "llvm.umin": "ule"}
_INTEGER: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "and": lambda a, b: a & b,
    "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "shl": lambda a, b: a << b, "lshr": lambda a, b: a >> b,
    "udiv": lambda a, b: a // b, "urem": lambda a, b: a % b, "ashr": lambda a, b: a >> b,
    "sdiv": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1), "srem": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
}  # fmt: skip
_FLAGS = {"nuw", "nsw", "exact", "disjoint", "nneg", "samesign", "inbounds", "nusw", "fast", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc",
          "volatile", "invariant"}  # fmt: skip
_ARITHMETIC = {"fadd": Kind.FP_ADD, "fsub": Kind.FP_SUB, "fmul": Kind.FP_MUL, "fdiv": Kind.FP_DIV}
_COMPARE = {"eq": Kind.FP_EQUAL, "gt": Kind.FP_GT, "ge": Kind.FP_GEQ, "lt": Kind.FP_LT, "le": Kind.FP_LEQ}


class Machine:
    """Runs a function for the thread that `registers` describes ("tid.x", "ctaid.x", ...).

    `integers` are the elements of integer tensors, and `names` the names of some elements of float tensors. The keys of
    both are (tensor, offset in bytes).
    """

    def __init__(
        self, function: Function, floats: Floats, registers: dict[str, int], integers: dict[tuple[str, int], int], names: dict[tuple[str, int], str]
    ) -> None:
        self.function, self.floats, self.registers, self.integers, self.names = function, floats, registers, integers, names
        self.addresses: dict[str, int] = {}  # by tensor, if the program has used the tensor's address as a number

    def run(self, arguments: list[Any]) -> Iterator[Path]:
        values = dict(zip(self.function.params, arguments, strict=True))
        pending = [Path(self.function.entry, values=values, approximations=Approximations(self.floats))]
        while pending:
            path = pending.pop()
            while path is not None:
                following = self._run_block(path)
                if following is None:
                    yield path
                    break
                path, *others = following
                pending.extend(others)

    def _run_block(self, path: Path) -> list[Path] | None:
        """Runs a block. Returns the paths that follow, or None at the end of the program."""
        instructions = self.function.blocks[path.block]
        phis = [i for i in instructions if i.opcode == "phi"]
        path.values.update({i.result: self._phi(path, i) for i in phis})
        for instruction in instructions[len(phis) :]:
            if instruction.opcode == "ret":
                return None
            if instruction.opcode == "br":
                return self._branch(path, instruction.text)
            value = self._execute(path, instruction)
            if instruction.result:
                path.values[instruction.result] = value
        raise ValueError(f"expected a block to end with a branch or a return, got '{instructions[-1].text}'")

    def _phi(self, path: Path, instruction: Instruction) -> Any:
        type_, rest = take_type(instruction.text.removeprefix("phi "))
        for pair in split(rest):
            value, block = split(pair.strip("[] "))
            if block == path.previous:
                return self._value(path, type_, value)
        raise ValueError(f"expected a value for {path.previous} in '{instruction.text}'")

    def _branch(self, path: Path, text: str) -> list[Path]:
        if text.startswith("br label"):
            path.previous, path.block = path.block, text.split("label ")[1].strip()
            return [path]
        condition, yes, no = split(text.removeprefix("br i1 "))
        yes, no = yes.removeprefix("label "), no.removeprefix("label ")
        value = self._value(path, Type("i1"), condition)
        if isinstance(value, (bool, int)):
            path.previous, path.block = path.block, yes if value else no
            return [path]
        return [path.fork(yes, value), path.fork(no, self.floats.negate(value))]

    # Values.

    def _value(self, path: Path, type_: Type, text: str) -> Any:
        text = drop_attributes(text.strip())
        if text.startswith("%"):
            return path.values[text]
        if type_.count:
            scalar = Type(type_.name)
            if text in ("zeroinitializer", "poison", "undef"):
                return [self._value(path, scalar, "0" if text == "zeroinitializer" else text)] * type_.count
            if text.startswith("splat ("):
                return [self._value(path, scalar, take_type(text[7:-1])[1])] * type_.count
            return [self._value(path, scalar, take_type(part)[1]) for part in split(text.strip("<>"))]
        if text in ("true", "false"):
            return text == "true"
        if text in ("null", "zeroinitializer") and type_.name == "ptr":
            return Pointer("")
        if text in ("poison", "undef"):
            return None
        if type_.name in FORMATS:
            return self._constant(text, type_.name)
        return int(text) & ((1 << self._width(type_)) - 1)

    def _constant(self, text: str, name: str) -> object:
        bits = float_bits("0.0" if text == "0" else text, name)
        size, code = (4, "<f") if name == "float" else (2, "<e")
        return self.floats.number(struct.unpack(code, bits.to_bytes(size, "little"))[0], name)

    @staticmethod
    def _width(type_: Type) -> int:
        return 64 if type_.name == "ptr" else int(type_.name[1:])

    @staticmethod
    def _each(type_: Type, function: Callable[..., Any], *operands: Any) -> Any:
        """Applies a scalar function to scalars or to each element of vectors."""
        if not type_.count:
            return function(*operands)
        return [function(*elements) for elements in zip(*operands, strict=True)]

    # Instructions.

    def _execute(self, path: Path, instruction: Instruction) -> Any:
        opcode = instruction.opcode
        text = instruction.text
        if opcode == "call":
            return self._call(path, text[text.index("call ") + 5 :])
        rest = text[len(opcode) + 1 :]
        while rest.split(" ", 1)[0] in _FLAGS:
            rest = rest.split(" ", 1)[1]
        handler = getattr(self, "_do_" + opcode, None)
        if handler:
            return handler(path, rest)
        if opcode in _INTEGER or opcode in _ARITHMETIC:
            return self._binary(path, opcode, rest)
        raise ValueError(f"expected an instruction of a kernel's program, got '{text}'")

    def _operands(self, path: Path, rest: str) -> tuple[Type, list[Any]]:
        """Parses "TYPE a, b". Returns the type and the values of the operands."""
        type_, rest = take_type(rest)
        return type_, [self._value(path, type_, part) for part in split(rest)]

    def _binary(self, path: Path, opcode: str, rest: str) -> Any:
        type_, (a, b) = self._operands(path, rest)
        if opcode in _ARITHMETIC:
            return self._each(type_, lambda x, y: self.floats.term(_ARITHMETIC[opcode], x, y, rounds=True), a, b)
        return self._each(type_, lambda x, y: self._integer(opcode, self._width(type_), x, y), a, b)

    def _integer(self, opcode: str, width: int, a: Any, b: Any) -> Any:
        if isinstance(a, (bool, int)) and isinstance(b, (bool, int)):
            if opcode in ("sdiv", "srem", "ashr"):
                half = 1 << (width - 1)
                a, b = (int(a) ^ half) - half, (int(b) ^ half) - half
            result = _INTEGER[opcode](int(a), int(b)) & ((1 << width) - 1)
            return bool(result) if width == 1 else result
        if width != 1:
            raise ValueError(f"expected '{opcode}' of integers that the call determines, got one that depends on what a tensor holds")
        x, y = (value if not isinstance(value, (bool, int)) else self._truth(bool(value)) for value in (a, b))
        return self.floats.term({"and": Kind.AND, "or": Kind.OR, "xor": Kind.XOR}[opcode], x, y)

    def _truth(self, value: bool) -> object:
        return self.floats.manager.mk_true() if value else self.floats.manager.mk_false()

    def _do_icmp(self, path: Path, rest: str) -> Any:
        predicate, rest = rest.split(" ", 1)
        if predicate == "samesign":
            predicate, rest = rest.split(" ", 1)
        type_, (a, b) = self._operands(path, rest)
        return self._each(type_, lambda x, y: self._compare(predicate, type_, x, y), a, b)

    def _compare(self, predicate: str, type_: Type, a: Any, b: Any) -> bool:
        if predicate in ("eq", "ne"):
            return (a == b) == (predicate == "eq")
        if predicate in _UNSIGNED:
            return _UNSIGNED[predicate](a, b)
        half = 1 << (self._width(type_) - 1)
        return _SIGNED[predicate]((a ^ half) - half, (b ^ half) - half)

    def _do_fcmp(self, path: Path, rest: str) -> Any:
        predicate, rest = rest.split(" ", 1)
        while predicate in _FLAGS:
            predicate, rest = rest.split(" ", 1)
        type_, (a, b) = self._operands(path, rest)
        return self._each(type_, lambda x, y: self._compare_floats(predicate, x, y), a, b)

    def _compare_floats(self, predicate: str, a: object, b: object) -> object:
        f = self.floats
        unordered = f.either(f.is_nan(a), f.is_nan(b))
        if predicate in ("ord", "uno"):
            return unordered if predicate == "uno" else f.negate(unordered)
        if predicate in ("one", "une"):
            differ = f.negate(f.term(Kind.FP_EQUAL, a, b))
            return differ if predicate == "une" else f.both(differ, f.negate(unordered))
        holds = f.term(_COMPARE[predicate[1:]], a, b)
        return f.either(unordered, holds) if predicate[0] == "u" else holds

    def _do_select(self, path: Path, rest: str) -> Any:
        (condition_type, condition), (type_, a), (_, b) = [self._typed(path, part) for part in split(rest)]
        if condition_type.count or not type_.count:
            return self._each(type_, self._choose, condition, a, b)
        return [self._choose(condition, x, y) for x, y in zip(a, b, strict=True)]

    def _choose(self, condition: Any, a: Any, b: Any) -> Any:
        if isinstance(condition, (bool, int)):
            return a if condition else b
        if isinstance(a, (bool, int)) or isinstance(b, (bool, int)):
            if isinstance(a, int) and isinstance(b, int) and a == b:
                return a
            a, b = (self._truth(bool(value)) if isinstance(value, (bool, int)) else value for value in (a, b))
        return self.floats.choose(condition, a, b)

    def _typed(self, path: Path, text: str) -> tuple[Type, Any]:
        type_, rest = take_type(text)
        return type_, self._value(path, type_, rest)

    def _cast(self, path: Path, rest: str) -> tuple[Type, Any, Type]:
        source, target = rest.rsplit(" to ", 1)
        type_, value = self._typed(path, source)
        return type_, value, take_type(target)[0]

    def _do_zext(self, path: Path, rest: str) -> Any:
        type_, value, _ = self._cast(path, rest)
        return self._each(type_, int, value)

    def _do_sext(self, path: Path, rest: str) -> Any:
        type_, value, target = self._cast(path, rest)
        half = 1 << (self._width(type_) - 1)
        return self._each(type_, lambda x: ((int(x) ^ half) - half) & ((1 << self._width(target)) - 1), value)

    def _do_trunc(self, path: Path, rest: str) -> Any:
        type_, value, target = self._cast(path, rest)
        mask = (1 << self._width(target)) - 1
        return self._each(type_, lambda x: bool(x & 1) if mask == 1 else x & mask, value)

    def _do_ptrtoint(self, path: Path, rest: str) -> Any:
        _, value, _ = self._cast(path, rest)
        return 0 if not value.base else self.addresses.setdefault(value.base, len(self.addresses) + 1 << 40) + value.offset

    def _do_fpext(self, path: Path, rest: str) -> Any:
        type_, value, target = self._cast(path, rest)
        return self._each(type_, lambda x: self.floats.convert(x, target.name), value)

    _do_fptrunc = _do_fpext

    def _do_fneg(self, path: Path, rest: str) -> Any:
        type_, (value,) = self._operands(path, rest)
        return self._each(type_, lambda x: self.floats.term(Kind.FP_NEG, x), value)

    def _do_freeze(self, path: Path, rest: str) -> Any:
        return self._typed(path, rest)[1]

    def _do_getelementptr(self, path: Path, rest: str) -> Pointer:
        element, base, *indices = split(rest)
        type_ = take_type(element)[0]
        _, pointer = self._typed(path, base)
        (index_type, index), *deeper = [self._typed(path, part) for part in indices]
        if deeper:
            raise ValueError(f"expected one index, got '{rest}'")
        half = 1 << (self._width(index_type) - 1)
        return Pointer(pointer.base, pointer.offset + ((index ^ half) - half) * type_.bytes)

    def _do_insertelement(self, path: Path, rest: str) -> list[Any]:
        vector, element, index = [self._typed(path, part)[1] for part in split(rest)]
        return [*vector[:index], element, *vector[index + 1 :]]

    def _do_extractelement(self, path: Path, rest: str) -> Any:
        vector, index = [self._typed(path, part)[1] for part in split(rest)]
        return vector[index]

    def _do_shufflevector(self, path: Path, rest: str) -> list[Any]:
        a, b, mask = [self._typed(path, part)[1] for part in split(rest)]
        return [None if index is None else (a + b)[index] for index in mask]

    # Memory.

    def _do_load(self, path: Path, rest: str) -> Any:
        type_, rest = take_type(rest)
        pointer = self._typed(path, split(rest)[1 if rest.startswith(",") else 0].lstrip(", "))[1]
        return self._load(path, type_, pointer)

    def _load(self, path: Path, type_: Type, pointer: Pointer) -> Any:
        if not pointer.base:
            raise ValueError("expected a load from a tensor, got one from null")
        elements = []
        for i in range(max(1, type_.count)):
            place = (pointer.base, pointer.offset + i * type_.scalar_bytes)
            elements.append(self._element(path, place, type_.name))
        return elements if type_.count else elements[0]

    def _element(self, path: Path, place: tuple[str, int], type_: str) -> Any:
        if place in path.stores:
            return path.stores[place]
        if type_ not in FORMATS:
            return self.integers[place]
        return self.floats.fresh(self.names.get(place, f"{place[0]}[{place[1]}]"), type_)

    def _do_store(self, path: Path, rest: str) -> None:
        value, target = split(rest)[:2]
        type_, stored = self._typed(path, value)
        pointer = self._typed(path, target)[1]
        for i, element in enumerate(stored if type_.count else [stored]):
            path.stores[pointer.base, pointer.offset + i * type_.scalar_bytes] = element

    # Calls.

    def _call(self, path: Path, text: str) -> Any:
        if " asm " in text:
            if not text.startswith("void"):
                raise ValueError(f"expected no value from assembly, got '{text}'")
            return None
        head, _, tail = text.partition("@")
        name, _, operands = tail.partition("(")
        values = [self._typed(path, part) for part in split(operands.rsplit(")", 1)[0])]
        if name.startswith("llvm.nvvm.read.ptx.sreg."):
            return self.registers[name.removeprefix("llvm.nvvm.read.ptx.sreg.")]
        if name.startswith(("llvm.nvvm.bar.", "llvm.nvvm.griddepcontrol.", "llvm.nvvm.prefetch.", "llvm.assume")):
            return None
        if name.startswith("llvm.masked.load."):
            (_, pointer), (_, mask), (type_, other) = values[:3]
            loaded = self._load(path, type_, pointer) if any(m is not False for m in mask) else other
            return self._each(type_, self._choose, mask, loaded, other)
        types = [type_ for type_, _ in values]
        return self._each(types[0], lambda *x: self._function(path, name, *x), *[value for _, value in values])

    def _function(self, path: Path, name: str, *x: object) -> object:
        extremum = _EXTREMA.get(name.rsplit(".", 1)[0])
        if extremum:
            return self._extremum(extremum, int(name.rsplit(".i", 1)[1]), *x)
        f = self.floats
        for prefix, kind in (("llvm.fma.", Kind.FP_FMA), ("llvm.sqrt.", Kind.FP_SQRT)):
            if name.startswith(prefix):
                return f.term(kind, *x, rounds=True)
        if name.startswith(("llvm.fabs.", "llvm.nvvm.fabs.")):
            return f.term(Kind.FP_ABS, x[0])
        if name.startswith("llvm.maximum."):
            return f.maximum(*x)
        if name.startswith("llvm.maxnum."):
            return f.maxnum(*x)
        for function in ("ex2", "lg2", "rcp"):
            if name.startswith(f"llvm.nvvm.{function}.approx"):
                return path.approximations.apply(function, x[0])
        raise ValueError(f"expected a function that the contract describes, got '{name}'")


    def _extremum(self, predicate: str, width: int, a: int, b: int) -> int:
        return a if self._compare(predicate, Type(f"i{width}"), a, b) else b


def parse(text: str, name: str) -> Function:
    return llvm_ir.parse_function(text, name)
