"""PTX instructions that move values between registers, memory, formats and threads."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from . import arithmetic as exact, mbarriers
from .arithmetic import TYPES, Array
from .mbarriers import OFFSETS
from .memory import Memory
from .operations import _FLOATS, _POISON, _ROUNDINGS, Threads, _packed, operation
from .text import Instruction, PtxError

_NARROW = ("e4m3", "e5m2")


@operation("mov")
def _move(threads: Threads, one: Instruction) -> None:
    to, source = one.operands
    kind = one.parts[-1]
    if isinstance(to, tuple):
        part = f"u{TYPES[kind].itemsize * 8 // len(to)}"
        value = threads.get(source, f"u{TYPES[kind].itemsize * 8}")
        for i, register in enumerate(to):
            width = TYPES[part].itemsize * 8
            threads.put(register, part, (value >> np.array(width * i, value.dtype)).astype(TYPES[part]))
    elif isinstance(source, tuple):
        whole = TYPES[f"u{TYPES[kind].itemsize * 8}"]
        width = whole.itemsize * 8 // len(source)
        made = np.zeros(threads.chosen.shape, whole)
        for i, register in enumerate(source):
            made |= threads.get(register, f"u{width}").astype(whole) << np.array(width * i, whole)
        threads.put(to, kind, made)
    elif source in ("%globaltimer", "%clock64"):
        threads.put(to, "u64", np.full(threads.chosen.shape, time.monotonic_ns(), np.uint64))
    elif source == "%lanemask_lt":
        lane = threads.blocks.lane[threads.chosen].astype(np.uint32)
        threads.put(to, "u32", (np.uint32(1) << lane) - np.uint32(1))
    else:
        threads.put(to, kind, threads.get(source, kind))


@operation("cvta", "isspacep")
def _generic(threads: Threads, one: Instruction) -> None:
    threads.put(one.operands[0], "u64", threads.get(one.operands[1], "u64"))


@operation("mapa")
def _map(threads: Threads, one: Instruction) -> None:
    """Executes mapa: makes the address of shared memory in a block of the cluster. The upper 32 bits are the block's
    number plus 1. No check is made here, since threads that do not use the address may execute mapa, too."""
    if one.parts[1:] != ["shared::cluster", "u64"]:
        raise PtxError("an address that is not known")
    block = threads.get(one.operands[2], "u32").astype(np.uint64)
    threads.put(one.operands[0], "u64", threads.get(one.operands[1], "u64") | (block + np.uint64(1)) << np.uint64(32))


@operation("cvt")
def _convert(threads: Threads, one: Instruction) -> None:
    target, source = one.parts[-2:]
    if "pack" in one.parts:
        _pack_bytes(threads, one)
    elif target.endswith("x2"):
        _convert_pair(threads, one, target[:-2], source)
    elif source in _FLOATS and target in _FLOATS:
        value = threads.get(one.operands[1], source)
        value = exact.flush(value) if "ftz" in one.parts and source == "f32" else value
        rounding = next((part for part in one.parts if part in _ROUNDINGS), "")
        if target == source and rounding:
            functions: dict[str, Any] = {"rzi": np.trunc, "rni": np.rint, "rmi": np.floor, "rpi": np.ceil}
            value = functions[rounding](value)
        elif any(part in ("rz", "rm", "rp") for part in one.parts):
            raise PtxError("a rounding that is not known")
        made = exact.narrow(value, target, "satfinite" in one.parts)
        if "sat" in one.parts:
            made = np.where(np.isnan(made), 0, np.clip(made, 0, 1)).astype(made.dtype)
        threads.put(one.operands[0], target, exact.flush(made) if "ftz" in one.parts and target == "f32" else made)
    elif source in _FLOATS:
        rounding = next(part for part in one.parts if part in _ROUNDINGS)
        threads.put(one.operands[0], target, exact.to_integer(threads.get(one.operands[1], source), target, rounding))
    elif target in _FLOATS:
        threads.put(one.operands[0], target, exact.from_integer(threads.get(one.operands[1], source), target))
    else:
        value = threads.get(one.operands[1], source)
        if "sat" in one.parts:
            info = np.iinfo(TYPES[target])
            value = np.array([min(max(int(x), int(info.min)), int(info.max)) for x in value], TYPES[target])
        threads.put(one.operands[0], target, value.astype(TYPES[target]))


def _pack_bytes(threads: Threads, one: Instruction) -> None:
    """Packs two s32 as saturated bytes into the lower half of the result; the second one is the lowest byte. The upper
    half is the lower half of the third operand."""
    narrow = one.parts[one.parts.index("sat") + 1]
    if narrow not in ("s8", "u8") or one.parts[-2:] != ["s32", "b32"]:
        raise PtxError("a packing that is not known")
    info = np.iinfo(TYPES[narrow])
    high, low = (np.clip(threads.get(operand, "s32"), int(info.min), int(info.max)).astype(np.uint32) & np.uint32(0xFF) for operand in one.operands[1:3])
    threads.put(one.operands[0], "b32", low | high << np.uint32(8) | threads.get(one.operands[3], "b32") << np.uint32(16))


def _convert_pair(threads: Threads, one: Instruction, target: str, source: str) -> None:
    """Converts two operands and packs them; the second one becomes the low half of the result."""
    if source.endswith("x2"):  # converts two packed fp8 to 16-bit floats
        word = threads.get(one.operands[1], "b16")
        narrow = source[:-2]
        halves = [np.ascontiguousarray(part.astype(np.uint8)).view(TYPES[narrow]) for part in (word & np.uint16(0xFF), word >> np.uint16(8))]
        threads.put(one.operands[0], "b32", _packed([exact.canonical(target, half.astype(np.float32).astype(TYPES[target])) for half in halves]))
        return
    high, low = (threads.get(operand, source) for operand in one.operands[1:3])
    if "relu" in one.parts:
        low, high = (np.where(np.isnan(value), value, np.maximum(value, 0)).astype(value.dtype) for value in (low, high))
    if target in _NARROW:
        parts = [exact.narrow(value, target, True).view(np.uint8).astype(np.uint16) for value in (low, high)]
        threads.put(one.operands[0], "b16", parts[0] | parts[1] << np.uint16(8))
        return
    if target not in _FLOATS:
        raise PtxError("a conversion that is not known")
    threads.put(one.operands[0], "b32", _packed([exact.narrow(value, target, "satfinite" in one.parts) for value in (low, high)]))


def _space(one: Instruction) -> str:
    return next((part for part in one.parts if part in ("global", "shared", "local", "param")), "global")


def _vector(one: Instruction) -> int:
    return next((int(part[1:]) for part in one.parts if part in ("v2", "v4", "v8")), 1)


def _checked(addresses: Array, whole: int) -> Array:
    if (addresses % np.uint64(whole)).any():
        raise PtxError(f"an access of {whole} bytes is not aligned")
    return addresses


@operation("ld", "ldu")
def _load(threads: Threads, one: Instruction) -> None:
    kind, count, space = one.parts[-1], _vector(one), _space(one)
    size = TYPES[kind].itemsize
    addresses = _checked(threads.address(one.operands[1]), size * count)
    to = one.operands[0] if isinstance(one.operands[0], tuple) else (one.operands[0],)
    made = []
    for i in range(count):
        at = addresses + np.uint64(size * i)
        if space == "param":
            # Compiled code loads, but never uses, the address of a tensor past the end of a list. So a load past the
            # parameters is no error. It gives poison here, and other constants on a GPU.
            padded = np.concatenate([threads.blocks.params, np.full(size, 0xA5, np.uint8)])
            places = np.minimum(at, threads.blocks.params.size).astype(np.int64)
            loaded = np.ascontiguousarray(padded[places[:, None] + np.arange(size)]).view(f"uint{size * 8}")[:, 0]
        elif space == "global":
            loaded = _memory(threads).load(at, size)
        else:
            loaded = getattr(threads.blocks, space).load(threads.chosen, at, size)
        made.append(loaded.view(TYPES[kind]))
    for register, value in zip(to, made):
        threads.put(register, kind, value)


@operation("st")
def _store(threads: Threads, one: Instruction) -> None:
    if one.parts[1] == "async":
        mbarriers.store(threads, one)
        return
    kind, count, space = one.parts[-1], _vector(one), _space(one)
    size = TYPES[kind].itemsize
    addresses = _checked(threads.address(one.operands[0]), size * count)
    values = one.operands[1] if isinstance(one.operands[1], tuple) else (one.operands[1],)
    for i, operand in enumerate(values):
        value = np.ascontiguousarray(threads.get(operand, kind)).view(f"uint{size * 8}")
        at = addresses + np.uint64(size * i)
        if "shared::cluster" in one.parts:
            threads.blocks.shared.store_of(threads.chosen, threads.blocks.owners_of(threads.chosen, at), at & OFFSETS, value)
        elif space == "global":
            _memory(threads).store(at, value)
        else:
            getattr(threads.blocks, space).store(threads.chosen, at, value)


@operation("atom", "red")
def _atomic(threads: Threads, one: Instruction) -> None:
    kind = one.parts[-1]
    size = TYPES[kind].itemsize
    name = next(part for part in one.parts if part in ("add", "exch", "cas", "min", "max", "inc", "or", "and"))
    shift = one.parts[0] == "atom"
    addresses = threads.address(one.operands[int(shift)])
    value = threads.get(one.operands[1 + int(shift)], kind)
    functions: dict[str, Any] = {"add": np.add, "min": np.minimum, "max": np.maximum, "or": np.bitwise_or, "and": np.bitwise_and, "exch": lambda old, new: new}
    if name not in functions:
        raise PtxError("an atomic operation that is not known")
    before = np.zeros_like(value)
    shared = _space(one) == "shared"
    for i in range(value.size):
        at, thread = addresses[i : i + 1], threads.chosen[i : i + 1]
        old = (threads.blocks.shared.exchange(thread, at, size) if shared else _memory(threads).load(at, size)).view(TYPES[kind])
        before[i : i + 1] = old
        made = np.asarray(functions[name](old, value[i : i + 1])).astype(TYPES[kind]).view(f"uint{size * 8}")
        if shared:
            threads.blocks.shared.store(thread, at, made, is_atomic=True)
        else:
            _memory(threads).store(at, made)
    if shift:
        threads.put(one.operands[0], kind, before)


def _memory(threads: Threads) -> Memory:
    """Returns global memory. Raises PtxError if a thread has not yet waited for the preceding grid."""
    if not threads.blocks.is_behind[threads.chosen].all():
        raise PtxError("an access of global memory before the wait for the preceding grid")
    return threads.blocks.memory


@operation("griddepcontrol")
def _grids(threads: Threads, one: Instruction) -> None:
    """Executes griddepcontrol. Only records that threads have waited, since the preceding grid has already ended."""
    if one.parts[1] == "wait":
        threads.blocks.is_behind[threads.chosen] = True


@operation("prefetch", "prefetchu", "membar", "nanosleep", "bar", "barrier", "applypriority", "discard")
def _nothing(threads: Threads, one: Instruction) -> None:
    """Does nothing for instructions that only order memory or give hints, and for barriers, at which machine.py makes
    threads wait."""


@operation("activemask")
def _active(threads: Threads, one: Instruction) -> None:
    raise PtxError("which threads run together is open")


@operation("shfl")
def _shuffle(threads: Threads, one: Instruction) -> None:
    """Executes a shuffle, once all participating threads have arrived. A thread that reads the register of an absent
    thread gets poison."""
    mode = one.parts[2]
    to = one.operands[0] if isinstance(one.operands[0], tuple) else (one.operands[0],)
    value = threads.get(one.operands[1], "b32")
    lane = threads.blocks.lane[threads.chosen].astype(np.int64)
    amount, control = threads.get(one.operands[2], "u32").astype(np.int64) & 31, threads.get(one.operands[3], "u32").astype(np.int64)
    clamp, segment = control & 31, control >> 8 & 31
    last, first = lane & segment | clamp & ~segment & 31, lane & segment
    if mode == "up":
        source, inside = lane - amount, lane - amount >= last
    elif mode == "down":
        source, inside = lane + amount, lane + amount <= last
    elif mode == "bfly":
        source, inside = lane ^ amount, (lane ^ amount) <= last
    else:
        source, inside = first | amount & ~segment & 31, (first | amount & ~segment & 31) <= last
    source = np.where(inside, source, lane)
    by_lane = np.full(32, _POISON, np.uint32)
    by_lane[lane] = value
    threads.put(to[0], "b32", by_lane[source])
    if len(to) > 1:
        threads.put(to[1], "pred", inside)


@operation("vote")
def _vote(threads: Threads, one: Instruction) -> None:
    flags = threads.get(one.operands[1], "pred")
    name = one.parts[2]
    if name == "ballot":
        lanes = threads.blocks.lane[threads.chosen][flags]
        threads.put(one.operands[0], "b32", np.full(flags.size, sum(1 << int(lane) for lane in lanes), np.uint32))
        return
    made = {"any": flags.any(), "all": flags.all(), "uni": flags.all() or not flags.any()}[name]
    threads.put(one.operands[0], "pred", np.full(flags.size, made))


@operation("redux")
def _reduce(threads: Threads, one: Instruction) -> None:
    kind = one.parts[-1]
    value = threads.get(one.operands[1], kind)
    functions: dict[str, Any] = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    threads.put(one.operands[0], kind, np.full(value.size, functions[one.parts[2]].reduce(value), TYPES[kind]))


