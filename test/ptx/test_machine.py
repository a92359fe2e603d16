"""Tests the PTX interpreter: its arithmetic against exact numbers, and its errors for faulty kernels."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from ptx import arithmetic, emulated  # noqa: E402
from ptx.machine import launch  # noqa: E402
from ptx.memory import Memory  # noqa: E402
from ptx.text import PtxError, parse  # noqa: E402

BASE = 0x1000


def execute(body: str, size: int, threads: int = 64, grid: int = 1, seed: int | None = None, shared: int = 256, cluster: int = 1) -> np.ndarray:
    """Executes `body` in a kernel with one u32 of output per thread. %out is the address of the thread's u32, %addr
    that of the first u32. Returns all u32."""
    text = f""".visible .entry k(
	.param .u64 k_param_0
)
.reqnctapercluster {cluster}, 1, 1
{{
	.reg .pred 	%p<9>;
	.reg .b32 	%r<9>;
	.reg .b64 	%rd<9>;
	.reg .b64 	%out, %addr;
	.shared .align 16 .b8 area[{shared}];
	ld.param.b64 	%addr, [k_param_0];
	mov.u32 	%r0, %tid.x;
	mul.wide.u32 	%rd0, %r0, 4;
	add.s64 	%out, %addr, %rd0;
{body}
	ret;
}}
"""
    data = np.zeros(size * 4, np.uint8)
    launch(parse(text)["k"], grid, threads, {"k_param_0": np.uint64(BASE).tobytes()}, Memory([(BASE, data)], "global"), seed, most_steps=2000)
    return data.view(np.uint32)


def integers(bits: int, signed: bool) -> st.SearchStrategy[int]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return st.sampled_from([low, high, 0, 1, high - 1]) | st.integers(low, high)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", [16, 32, 64])
@given(data=st.data())
def test_integers_as_python_has_them(bits: int, signed: bool, data: st.DataObject) -> None:
    x, y = data.draw(integers(bits, signed)), data.draw(integers(bits, signed))
    a, b = (np.array([value], f"{'int' if signed else 'uint'}{bits}") for value in (x, y))
    with np.errstate(all="ignore"):
        quotient, high = arithmetic.divide(a, b), arithmetic.high_product(a, b)
    if y:
        exact = abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)
        assert int(quotient[0]) % (1 << bits) == exact % (1 << bits)
    assert int(high[0]) == x * y >> bits
    if not signed:
        assert int(arithmetic.leading_zeros(a)[0]) == bits - x.bit_length()
        assert int(arithmetic.ones(a)[0]) == bin(x).count("1")


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", [32, 64])
@given(data=st.data())
def test_bits_are_extracted_as_ptx_says(bits: int, signed: bool, data: st.DataObject) -> None:
    x = data.draw(integers(bits, signed))
    start, length = data.draw(st.integers(0, 255)), data.draw(st.integers(0, 255))
    with np.errstate(all="ignore"):
        found = arithmetic.extract(np.array([x], f"{'int' if signed else 'uint'}{bits}"), np.array([start], np.uint32), np.array([length], np.uint32))
    sign = x >> min(start + length - 1, bits - 1) & 1 if signed and length else 0
    exact = [x >> start + i & 1 if i < length and start + i < bits else sign for i in range(bits)]
    assert [int(found[0]) >> i & 1 for i in range(bits)] == exact


FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(a=FLOATS, b=FLOATS, c=FLOATS, cancels=st.booleans())
def test_fma_rounds_once(a: float, b: float, c: float, cancels: bool) -> None:
    with np.errstate(all="ignore"):
        if cancels:
            c = float(-(np.float32(a) * np.float32(b)))
        if not np.isfinite(c):
            return
        found = float(arithmetic.fma(*(np.array([value], np.float32) for value in (a, b, c)))[0])
        below, above = (float(np.nextafter(np.float32(found), np.float32(end))) for end in (-np.inf, np.inf))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if np.isinf(found):
        assert abs(exact) >= Fraction(2) ** 128 - Fraction(2) ** 103
        return
    for other in (below, above):
        if np.isfinite(other):
            assert abs(exact - Fraction(found)) <= abs(exact - Fraction(other))


@pytest.mark.parametrize("kind, factor, tiny, nearest", [
    ("bf16", 87 / 128, 2.0**-100, 131 / 128), ("bf16", 87 / 128, 0.0, 130 / 128), ("bf16", 87 / 128, -(2.0**-100), 130 / 128),
    ("f16", 683 / 1024, 2.0**-24, 1025 / 1024), ("f16", 683 / 1024, 0.0, 1.0), ("f16", 683 / 1024, -(2.0**-24), 1.0),
])  # fmt: skip
def test_an_fma_of_16_bits_rounds_once(kind: str, factor: float, tiny: float, nearest: float) -> None:
    """The product, 130.5 / 128 or 1024.5 / 1024, is halfway between two numbers of 16 bits."""
    a, b, c = (np.array([value]).astype(arithmetic.TYPES[kind]) for value in (1.5, factor, tiny))
    assert float(arithmetic.fma(a, b, c)[0]) == nearest


@pytest.mark.parametrize("operation", ["fma.rn.ftz.f16 	%h1, %h1, %h1, %h1", "fma.rn.ftz.f16x2 	%r1, %r1, %r1, %r1"])
def test_subnormal_numbers_of_f16_are_not_flushed(operation: str) -> None:
    with pytest.raises(PtxError, match="expected .ftz with .f32"):
        execute(f"\t.reg .b16 \t%h<2>;\n\t{operation};", 64)


@pytest.mark.parametrize("tiny, nearest", [(2.0**-40, 131), (0.0, 130), (-(2.0**-40), 130)])
def test_a_cast_of_f64_to_bf16_rounds_once(tiny: float, nearest: int) -> None:
    made = arithmetic.narrow(np.array([130.5 / 128 + tiny, -130.5 / 128 - tiny]), "bf16", False)
    assert made.astype(float).tolist() == [nearest / 128, -nearest / 128]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("kind, bits", [("bf16", 8), ("f16", 11)])
@given(data=st.data())
def test_integers_are_rounded_once_to_16_bits(kind: str, bits: int, sign: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(bits + 1, (64 if sign > 0 else 63) if kind == "bf16" else 15))
    beyond = size - bits  # the number of bits that rounding takes away
    kept = data.draw(st.integers(1 << bits - 1, (1 << bits) - 2))
    rest = min(max((1 << beyond - 1) + data.draw(st.integers(-1, 1)), 0), (1 << beyond) - 1)  # the middle and its neighbours
    up = 2 * rest > 1 << beyond or (2 * rest == 1 << beyond and kept % 2 == 1)
    made = arithmetic.from_integer(np.array([sign * (kept << beyond | rest)], np.uint64 if sign > 0 else np.int64), kind)
    assert int(float(made[0])) == sign * (kept + up << beyond)


@pytest.mark.parametrize("kind, value, nearest", [
    ("bf16", -(2**63), -(2.0**63)), ("f16", -(2**63), -np.inf), ("f16", 65519, 65504.0), ("f16", 65520, np.inf), ("f16", -65520, -np.inf),
])  # fmt: skip
def test_integers_at_the_ends_become_the_nearest_of_16_bits(kind: str, value: int, nearest: float) -> None:
    with np.errstate(over="ignore"):
        assert float(arithmetic.from_integer(np.array([value], np.int64), kind)[0]) == nearest


@pytest.mark.parametrize("seed", [None, *range(8)])
def test_threads_meet_at_barriers(seed: int | None) -> None:
    """A barrier orders stores and loads: thread i reads the value that thread (i + 33) % 64 stored, which is in the
    other warp for most i."""
    found = execute(_EXCHANGE.format(barrier="bar.sync 0;"), 64, seed=seed)
    assert found.tolist() == [(i + 33) % 64 for i in range(64)]


@pytest.mark.parametrize("seed", [None, *range(8)])
def test_a_missing_barrier_shows(seed: int | None) -> None:
    with pytest.raises(PtxError, match="a race over shared memory"):
        execute(_EXCHANGE.format(barrier=""), 64, seed=seed)


_EXCHANGE = """
	mov.b32 	%r1, area;
	shl.b32 	%r2, %r0, 2;
	add.s32 	%r3, %r1, %r2;
	st.shared.b32 	[%r3], %r0;
	bra 	$L1;
$L1:
	{barrier}
	add.s32 	%r4, %r0, 33;
	and.b32 	%r4, %r4, 63;
	shl.b32 	%r4, %r4, 2;
	add.s32 	%r4, %r1, %r4;
	ld.shared.b32 	%r5, [%r4];
	st.global.b32 	[%out], %r5;
"""


_CLUSTER = """
	{begin}
	mov.b64 	%rd1, area;
	mov.b32 	%r1, %ctaid.x;
	and.b32 	%r1, %r1, 1;
	xor.b32 	%r2, %r1, 1;
	mapa.shared::cluster.u64 	%rd2, %rd1, %r2;
	setp.ne.u32 	%p1, %r0, 63;
	@%p1 bra 	$L1;
	st.shared::cluster.b32 	[%rd2], %r1;
$L1:
	{barrier}
	ld.shared.b32 	%r3, [area];
	mov.b32 	%r4, %ctaid.x;
	mul.wide.u32 	%rd3, %r4, 256;
	add.s64 	%rd3, %rd3, %out;
	st.global.b32 	[%rd3], %r3;
"""
_ARRIVE, _WAIT = "barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;"


@pytest.mark.parametrize("seed", [None, *range(8)])
def test_blocks_of_a_cluster_store_to_each_other(seed: int | None) -> None:
    found = execute(_CLUSTER.format(begin=_ARRIVE + _WAIT, barrier=_ARRIVE + _WAIT), 256, grid=4, seed=seed, cluster=2)
    assert found.reshape(4, 64).tolist() == [[1 - block % 2] * 64 for block in range(4)]


@pytest.mark.parametrize("begin, barrier, message", [
    ("", _ARRIVE + _WAIT, "may not have begun"),
    (_ARRIVE + _ARRIVE, "", "arrives twice"),
    (_WAIT, "", "has not arrived"),
    (_ARRIVE + _WAIT + "add.s32 %r2, %r2, 2;\n", "", "of a cluster of 2"),
])  # fmt: skip
def test_what_is_wrong_in_a_cluster_is_said(begin: str, barrier: str, message: str) -> None:
    body = _CLUSTER.replace("	{begin}\n", "").replace("	mapa", "	{begin}\n	mapa")
    with pytest.raises(PtxError, match=message):
        execute(body.format(begin=begin, barrier=barrier), 128, grid=2, cluster=2)


def test_a_missing_barrier_of_a_cluster_shows() -> None:
    body = _CLUSTER.format(begin=_ARRIVE + _WAIT, barrier="")
    assert any(_fails(body, seed) for seed in range(64))


@pytest.mark.parametrize("seed", [None, *range(8)])
def test_a_barrier_of_blocks_does_not_order_accesses_of_another_block(seed: int | None) -> None:
    body = _CLUSTER.format(begin=_ARRIVE + _WAIT, barrier="bar.sync 0;") + _ARRIVE + _WAIT
    with pytest.raises(PtxError, match="a race over shared memory"):
        execute(body, 128, grid=2, seed=seed, cluster=2)


_BARRIER = """	mov.b32 	%r5, counter;
	setp.ne.u32 	%p2, %r0, 0;
	@%p2 bra 	$L0;
	mbarrier.init.shared.b64 	[counter], 1;
	mbarrier.arrive.expect_tx.shared.b64 	%rd4, [counter], {bytes};
	{fence}
$L0:
"""
_COUNTED = """	mov.b64 	%rd5, counter;
	mapa.shared::cluster.u64 	%rd6, %rd5, %r2;
	st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 	[%rd2], %r1, [%rd6];
"""
_AWAIT = """$L2:
	mbarrier.try_wait.parity.acquire.cluster.shared.b64 	%p3, [counter], 0;
	@!%p3 bra 	$L2;
"""
_FENCE, _ARRIVE_RELAXED = "fence.mbarrier_init.release.cluster;", "barrier.cluster.arrive.relaxed.aligned;"
_INIT = "	mbarrier.init.shared.b64 	[counter], 1;\n"


def _counted(bytes: int = 4, fence: str = _FENCE, wait: str = _AWAIT, stores: int = 1, late: str = "") -> str:
    """The exchange of _CLUSTER, whose stores mbarriers count. `late` stands between arrival and wait."""
    body = _CLUSTER.replace("	st.shared::cluster.b32 	[%rd2], %r1;\n", _COUNTED * stores)
    body = body.format(begin=_BARRIER.format(bytes=bytes, fence=fence) + _ARRIVE_RELAXED + late + _WAIT, barrier=wait)
    return "	.shared .align 8 .b8 counter[8];\n" + body


@pytest.mark.parametrize("seed", [None, *range(8)])
def test_an_mbarrier_counts_what_blocks_store(seed: int | None) -> None:
    found = execute(_counted(), 256, grid=4, seed=seed, cluster=2)
    assert found.reshape(4, 64).tolist() == [[1 - block % 2] * 64 for block in range(4)]


_UNORDERED = "has not waited for it|a store to where another one loads|may have ended"


@pytest.mark.parametrize("body, message", [
    (_counted(wait=""), _UNORDERED),
    (_counted(wait="bar.sync 	0;"), _UNORDERED),
    (_counted(fence=""), "no fence.mbarrier_init and cluster barrier after it"),
    (_counted(fence="", late=_FENCE), "no fence.mbarrier_init and cluster barrier after it"),
    (_counted(bytes=8), "expected the kernel to end"),
    (_counted(stores=2), "counts 8 bytes and expects 4"),
    (_counted().replace(_INIT, ""), "not initialised"),
    (_counted().replace(_INIT, 2 * _INIT), "initialised twice"),
    (_counted().replace("%rd6, %rd5, %r2", "%rd6, %rd5, %r1"), "the mbarrier of another block"),
    (_counted(wait=_AWAIT.replace(".cluster", ".cta")), "without .acquire.cluster"),
    (_counted(wait=_AWAIT.replace("acquire", "relaxed")), "without .acquire.cluster"),
    (_counted(wait=_AWAIT.replace("], 0", "], 1")), "a second phase"),
])  # fmt: skip
@pytest.mark.parametrize("seed", [None, *range(4)])
def test_wrong_uses_of_an_mbarrier_are_errors(body: str, message: str, seed: int | None) -> None:
    with pytest.raises(PtxError, match=message):
        execute(body, 128, grid=2, seed=seed, cluster=2)


def _fails(body: str, seed: int) -> bool:
    try:
        return execute(body, 128, grid=2, seed=seed, cluster=2).reshape(2, 64).tolist() != [[1] * 64, [0] * 64]
    except PtxError:  # a store to a block that has ended also counts as a failure
        return True


_MINE = "	mov.b32 	%r1, area;\n	mad.lo.s32 	%r2, %r0, 4, %r1;\n	xor.b32 	%r3, %r0, {bit};\n	mad.lo.s32 	%r4, %r3, 4, %r1;\n"
_STORE, _LOAD = "	st.shared.b32 	[%r2], %r0;\n", "	ld.shared.b32 	%r5, [%r4];\n"
_BLOCK, _IN_WARP, _SHUFFLE = "	bar.sync 	0;\n", "	bar.warp.sync 	-1;\n", "	shfl.sync.bfly.b32 	%r6, %r0, 1, 31, -1;\n"
_ALL_ADD = "	red.shared.add.u32 	[area], 1;\n"
# In _LOAD_ONE, all threads of a warp load one word. In _STORE_ONE, the last thread of the warp stores to this word.
_LOAD_ONE = ("	shr.u32 	%r6, %r0, 5;\n	mad.lo.s32 	%r7, %r6, 4, %r1;\n	and.b32 	%r8, %r0, 31;\n	setp.ge.u32 	%p1, %r8, 16;\n"
             "	setp.eq.u32 	%p2, %r8, 31;\n	ld.shared.b32 	%r5, [%r7];\n")  # fmt: skip
_STORE_ONE = "	@%p2 st.shared.b32 	[%r7], 7;\n"


@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("bit, body, race", [
    (32, _STORE + _BLOCK + _LOAD + _BLOCK + _STORE, ""),
    (32, _STORE + _BLOCK + _LOAD + _STORE, "a store to where another one loads"),
    (32, _STORE + _LOAD, "a load of what another one stores|a store to where another one loads"),
    (32, _STORE + _IN_WARP + _LOAD, "a load of what another one stores|a store to where another one loads"),
    (1, _STORE + _IN_WARP + _LOAD, ""),
    (1, _STORE + _IN_WARP + _LOAD + _IN_WARP + _STORE, ""),
    (1, _STORE + _SHUFFLE + _LOAD, "a load of what another one stores"),
    (1, _STORE + _IN_WARP + _LOAD + _STORE, "a store to where another one loads"),
    (0, _STORE + _LOAD + _STORE, ""),
    (0, "	st.shared.b32 	[%r1], 7;\n", ""),
    (0, "	st.shared.b32 	[%r1], %r0;\n", "different values to one place at once"),
    (0, _ALL_ADD + _ALL_ADD + _BLOCK + "	ld.shared.b32 	%r5, [area];\n", ""),
    (0, _ALL_ADD + "	ld.shared.b32 	%r5, [area];\n", "a load of what another one stores|a store to where another one loads"),
    (0, "	ld.shared.b32 	%r5, [area];\n" + _BLOCK + _LOAD + _STORE, ""),
    (0, "	ld.shared.b32 	%r5, [area];\n" + _STORE, "a store to where another one loads"),
    (0, _LOAD_ONE + _STORE_ONE, "a store to where another one loads"),
    (0, _LOAD_ONE + _IN_WARP + _STORE_ONE, ""),
    (0, _LOAD_ONE + "	@%p1 bar.warp.sync 	-65536;\n" + _STORE_ONE, "a store to where another one loads"),
])  # fmt: skip
def test_races_over_shared_memory_are_errors(bit: int, body: str, race: str, seed: int | None) -> None:
    """A race is an error in every order of execution."""
    if not race:
        execute(_MINE.format(bit=bit) + body, 64, seed=seed)
        return
    with pytest.raises(PtxError, match=race):
        execute(_MINE.format(bit=bit) + body, 64, seed=seed)


def test_a_grid_has_whole_clusters() -> None:
    with pytest.raises(PtxError, match="a grid of 3 blocks, in clusters of 2"):
        execute("", 192, grid=3, cluster=2)


@pytest.mark.parametrize("body, message", [
    ("	st.global.b32 	[%out+4], %r0;", "outside of it"),
    ("	st.global.b32 	[%out+2], %r0;", "not aligned"),
    ("	ld.global.v2.b32 	{%r1, %r2}, [%out];", "not aligned"),
    ("	mov.b32 	%r1, area;\n	st.shared.b32 	[%r1+256], %r0;", "outside of its 256"),
    ("	setp.lt.u32 	%p1, %r0, 32;\n	@%p1 bra 	$L1;\n	bar.sync 	0;\n	bra 	$L2;\n$L1:\n	shfl.sync.idx.b32 	%r1, %r0, 0, 31, -1;\n	bar.sync 	0;\n$L2:",
     "do not come"),
    ("	setp.eq.u32 	%p1, %r0, 0;\n	@%p1 bra 	$L1;\n	shfl.sync.idx.b32 	%r1, %r0, 0, 31, -1;\n$L1:", "do not come"),
    ("	setp.lt.u32 	%p1, %r0, 9;\n	@%p1 griddepcontrol.wait;\n	st.global.b32 	[%out], %r0;", "before the wait for the preceding grid"),
    ("$L1:\n	bra 	$L1;", "expected the kernel to end"),
    ("	tex.2d.v4.f32.f32 	%r1, %r2;", "not known"),
])  # fmt: skip
def test_what_is_wrong_is_said(body: str, message: str) -> None:
    with pytest.raises(PtxError, match=message):
        execute(body, 64)


def test_a_register_of_a_thread_that_takes_no_part_is_poison() -> None:
    body = "	setp.gt.u32 	%p1, %r0, 7;\n	@%p1 bra 	$L1;\n	shfl.sync.bfly.b32 	%r1, %r0, 8, 31, 255;\n	st.global.b32 	[%out], %r1;\n$L1:"
    assert (execute(body, 64)[:8] == 0xDEADBEEF).all()


def test_shuffles_and_votes() -> None:
    body = """
	shfl.sync.up.b32 	%r1, %r0, 1, 0, -1;
	shfl.sync.bfly.b32 	%r2, %r0, 4, 31, -1;
	setp.lt.u32 	%p1, %r0, 3;
	vote.sync.ballot.b32 	%r3, %p1, -1;
	add.s32 	%r4, %r1, %r2;
	add.s32 	%r4, %r4, %r3;
	st.global.b32 	[%out], %r4;
"""
    found = execute(body, 32, threads=32)
    assert found.tolist() == [max(i - 1, 0) + (i ^ 4) + 7 for i in range(32)]


def test_bytes_are_packed_and_saturate() -> None:
    body = """
	cvt.u32.u32 %r1, %r0;
	sub.s32 %r1, 1, %r1;
	cvt.pack.sat.s8.s32.b32 %r3, 1000, %r1, 0x12345678;
	cvt.pack.sat.u8.s32.b32 %r4, %r1, -1000, %r3;
	mad.lo.s32 %r5, %r3, 3, %r4;
	st.global.u32 [%out], %r5;"""
    packed = [0x56787F00 | (1 - t & 0xFF) for t in range(64)]
    want = [(3 * word + (word << 16 | max(1 - t, 0) << 8)) & 0xFFFFFFFF for t, word in enumerate(packed)]
    assert execute(body, 64).tolist() == want


def test_scopes_of_inline_assembly_have_registers_of_their_own() -> None:
    body = """
	{
	.reg .b32 t;
	add.s32 t, %r0, 1;
	{
	.reg .b32 t;
	mov.b32 t, 5;
	}
	st.global.b32 [%out], t;
	}
"""
    assert execute(body, 64).tolist() == list(range(1, 65))


@pytest.mark.parametrize("shape", [(3,), (3, 2)])
def test_parts_of_a_tensor_are_views_of_its_memory(shape: tuple[int, ...]) -> None:
    array = np.zeros(shape, np.int64)
    tensor = emulated.Tensor(array, None)  # type: ignore[arg-type]
    for i, part in enumerate(tensor):
        part.array[...] = i
        assert part.shape == shape[1:] and np.shares_memory(part.array, array)
    last = tensor[(-1,) * len(shape)]
    assert last.shape == () and np.shares_memory(last.array, array) and last.get() == 2
    assert tensor[..., None].shape == (*shape, 1) and tensor[:1].get().max() == 0
