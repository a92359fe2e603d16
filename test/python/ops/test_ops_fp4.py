"""Tests NVFP4 results of merges, and scales in tiles of 128 x 4: the bits equal those of a merge followed by a
quantiser, padding is cleared, and launches may share a tile."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from devices import Device
from numerics import BF16, E4M3, E8M0, F16, F32
from packing import codes_of, packed
from test_ops_scaled import CALLS, H, N, quantised, two
from packing import rows_of

from mlafix import ArgumentError, ops
from mlafix.compat import vllm

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")
from mlafix.kernels import merge  # noqa: E402
from mlafix.kernels.rows import clear_padding  # noqa: E402
from mlafix.kernels.scaling import Scaling  # noqa: E402

D = 128
G = D // 16
GLOBAL = 448.0 * 6.0 / 300.0
POISON = 0x5A


def nvfp4(rows: np.ndarray, number: float) -> tuple[np.ndarray, np.ndarray]:
    """Quantises rows like the engines: in f32, with correctly rounded reciprocals. Returns the codes and the scales,
    both as bytes."""
    number = F32.type(number)
    each = rows.astype(F32).reshape(*rows.shape[:-1], -1, 16)
    with np.errstate(all="ignore"):
        largest = np.abs(each).max(-1)
        scales = np.minimum(number * (largest * (F32.type(1) / F32.type(6))), F32.type(448)).astype(E4M3)
        wide = scales.astype(F32)
        factor = np.where(wide != 0, F32.type(1) / (wide * (F32.type(1) / number)), F32.type(0)).astype(F32)
        elements = each * factor[..., None]
    return packed(codes_of(elements.reshape(rows.shape))), scales.view(np.uint8)


def memories(groups: int, scale: np.dtype) -> dict[str, np.ndarray]:
    """Returns poisoned memory for the scales in each layout, for rows with this many groups."""
    columns = H * groups
    return {
        "rows": np.full((N, H, groups), POISON, np.uint8),
        "flat": np.full((N, columns), POISON, np.uint8).view(scale),
        "columns": np.full((columns, N), POISON, np.uint8).T,
        "tiles": np.full((128, columns), POISON, np.uint8).view(scale),
        "words": np.full((256, columns // 4), 0x5A5A5A5A, np.int32),
    }


def scales_in(stored: np.ndarray, layout: str, first: int) -> np.ndarray:
    """Returns the scales as [N, H, G] bytes. For tiles, asserts that the padding of the last tile is cleared and that
    all other rows are unchanged."""
    each = np.ascontiguousarray(stored).view(np.uint8)
    if layout not in ("tiles", "words"):
        return each.reshape(N, H, -1)
    rows = rows_of(each, each.shape[-1])
    end = -(-(first + N) // 128) * 128
    assert (rows[:first] == POISON).all() and (rows[first + N : end] == 0).all() and (rows[end:] == POISON).all()
    return rows[first : first + N].reshape(N, H, -1)


def check_unfused(device: Device, rng: np.random.Generator, name: str, dtype: np.dtype, source: Any, places: dict[str, np.ndarray],
                  form: Callable[..., Any], quantise: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]) -> None:
    """Compares merges into a format of fp4 with merges followed by a quantiser. `places` has poisoned memory for the
    scales, by layout."""
    call, inputs = CALLS[name](rng, dtype, D)
    given = [device.put(array) for array in inputs]
    wide = [device.put(array.astype(F32)) if array.dtype == dtype else tensor for array, tensor in zip(inputs, given)]
    merged, lse = call(*(given if source == "output" else wide))
    want, numbers = quantise(device.get(merged).reshape(N, H, D))
    for layout, poisoned in places.items():
        scales, first = device.put(poisoned), 101 if layout == "words" else 0
        tiled = layout in ("tiles", "words")
        shaped = scales[:, None] if name == "split" and not tiled else scales
        q, q_lse = call(*given, out_format=form(shaped, tiles="128x4" if tiled else None, first_row=first, quantize_from=source))
        np.testing.assert_array_equal(device.get(q_lse), device.get(lse))
        np.testing.assert_array_equal(scales_in(device.get(scales), layout, first), numbers)
        np.testing.assert_array_equal(device.get(q).reshape(N, H, D // 2), want)


SOURCES = [(BF16, "output"), (BF16, "f32"), (F16, "output"), (F32, "f32")]


@pytest.mark.parametrize("dtype, source", SOURCES, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_the_bits_of_the_unfused_sequence(device: Device, rng: np.random.Generator, name: str, dtype: np.dtype, source: Any) -> None:
    """A merge into NVFP4 has the bits of a merge followed by a quantiser. (BF16, "output") runs in all layouts of
    scales; the other cases run in some of them."""
    every, turn = 1 if (dtype, source) == SOURCES[0] else 5, list(CALLS).index(name)
    some = {layout: memory for i, (layout, memory) in enumerate(memories(G, E4M3).items()) if (i + turn) % every == 0}
    check_unfused(device, rng, name, dtype, source, some, lambda scales, **how: ops.NvFp4(scales, GLOBAL, **how), lambda rows: nvfp4(rows, GLOBAL))


def test_rows_of_empty_states_and_nan(device: Device, rng: np.random.Generator) -> None:
    call, inputs = two(rng, BF16, D)
    scales = device.put(np.full((N, H, G), POISON, np.uint8))
    q, _ = call(*(device.put(array) for array in inputs), out_format=ops.NvFp4(scales, GLOBAL))
    q, scales = device.get(q), device.get(scales)
    assert (q[3] == 0).all() and (scales[3] == 0).all()
    assert scales[4, 2, 0] == 0x7F and (q[4, 2, :8] == 0x77).all() and not (scales[4, 2, 1:] == 0x7F).any()


@pytest.mark.parametrize("number", [1.0, GLOBAL, 3000.0])
def test_scales_next_to_ties_of_e4m3(device: Device, rng: np.random.Generator, number: float) -> None:
    """Scales next to ties of e4m3 are rounded as in the engines. They would differ if the reciprocal of 6 were off by
    one ulp, or if products had another order."""
    codes = np.arange(1, 0x7F, dtype=np.uint8).view(E4M3).astype(np.float64)
    points = ((codes[1:] + codes[:-1]) / 2 * 6 / number).astype(F32)
    largest = np.concatenate([(points.view(np.int32) + step).view(F32) for step in range(-3, 4)])
    rows = rng.uniform(-1, 1, (largest.size, 1, 16)).astype(F32) * largest[:, None, None]
    rows[:, 0, 5] = -largest
    lse, none = np.zeros((1, largest.size), F32), np.full((1, largest.size), -np.inf, F32)
    scales, given = device.put(np.full((largest.size, 1), POISON, np.uint8)), [device.put(x) for x in (rows, lse, rows, none)]
    q, _ = ops.merge_attn_states(*given, out_format=ops.NvFp4(scales, number))
    want, numbers = nvfp4(rows, number)
    np.testing.assert_array_equal(device.get(scales), numbers[:, 0])
    np.testing.assert_array_equal(device.get(q), want)


def test_the_global_scale_may_be_a_tensor(device: Device, rng: np.random.Generator) -> None:
    call, inputs = two(rng, BF16, D)
    given = [device.put(array) for array in inputs]
    results = []
    for number in (GLOBAL, device.put(np.full((1,), GLOBAL, F32)), device.put(np.full((1, 1), GLOBAL, F32))):
        scales = device.put(np.full((N, H, G), POISON, np.uint8))
        q, _ = call(*given, out_format=ops.NvFp4(scales, number), return_lse=False)
        results.append((device.get(q), device.get(scales)))
    for q, scales in results[1:]:
        np.testing.assert_array_equal(q, results[0][0])
        np.testing.assert_array_equal(scales, results[0][1])


@pytest.mark.parametrize("heads, dim", [(1, 16), (3, 48), (5, 96), (128, 128), (16, 512)])
def test_other_heads(device: Device, rng: np.random.Generator, heads: int, dim: int) -> None:
    """Tests other numbers of heads and head dims. For the first three, the columns of scales do not fill the last tile.
    Padding columns and later rows are cleared, while rows before `first_row` are unchanged."""
    rows, lse = (rng.standard_normal((130, heads, dim)) * 3).astype(BF16), rng.standard_normal((heads, 130)).astype(F32)
    columns = heads * dim // 16
    memory = device.put(np.full((256, -(-columns // 4) * 4), POISON, np.uint8))
    a, b = device.put(rows), device.put(lse)
    merged, _ = ops.merge_attn_states(a, b, a, b)
    q, _ = ops.merge_attn_states(a, b, a, b, out_format=ops.NvFp4(memory, 2.0, tiles="128x4", first_row=3, quantize_from="output"))
    want, numbers = nvfp4(device.get(merged), 2.0)
    np.testing.assert_array_equal(device.get(q), want)
    stored = rows_of(device.get(memory), memory.shape[1])
    np.testing.assert_array_equal(stored[3:133, :columns], numbers.reshape(130, columns))
    stored[3:133, :columns] = 0
    assert (stored[:3] == POISON).all() and (stored[3:] == 0).all()


def test_vllm_47826_two_launches_share_a_tile(device: Device, rng: np.random.Generator) -> None:
    """vLLM #47826 fuses NVFP4 only in batches of prefill tokens, since two launches could not write one tile of scales.

    Here one launch stores prefill tokens and another stores decode tokens. In either order, the bytes equal those of a single launch.
    """
    _, (a, s, b, t) = two(rng, BF16, D)
    given = [np.concatenate([x] * 15, axis) for x, axis in ((a, 0), (s, 1), (b, 0), (t, 1))]  # 105 tokens
    tokens, decode = 105, 37
    whole = device.put(np.full((128, H * G), POISON, np.uint8))
    q, _ = ops.merge_attn_states(*map(device.put, given), out_format=ops.NvFp4(whole, GLOBAL, tiles="128x4", clear_padding=False))
    for order in ((0, 1), (1, 0)):
        memory = device.put(np.full((128, H * G), POISON, np.uint8))
        parts = device.put(np.full((tokens, H, D // 2), POISON, np.uint8))
        for which in order:
            begin, end = ((0, tokens - decode), (tokens - decode, tokens))[which]
            some = [device.put(np.ascontiguousarray(x[begin:end] if x.ndim == 3 else x[:, begin:end])) for x in given]
            where = ops.NvFp4(memory, GLOBAL, tiles="128x4", first_row=begin, clear_padding=False)
            ops.merge_attn_states(*some, out=parts[begin:end], out_format=where)
        np.testing.assert_array_equal(device.get(memory), device.get(whole))
        np.testing.assert_array_equal(device.get(parts), device.get(q))
    assert (rows_of(device.get(whole), H * G)[tokens:] == POISON).all()


def test_mxfp8_scales_in_tiles(device: Device, rng: np.random.Generator) -> None:
    call, inputs = two(rng, BF16, D)
    given, columns = [device.put(array) for array in inputs], H * D // 32
    memory = device.put(np.full((128, columns), POISON, np.uint8).view(E8M0))
    merged, _ = call(*given)
    q, _ = call(*given, out_format=ops.MxFp8(memory, tiles="128x4", first_row=20, quantize_from="output"))
    bits, powers = quantised(device.get(merged), D // 32, True)
    stored = rows_of(device.get(memory).view(np.uint8), columns)
    got = stored[20 : 20 + N].view(E8M0).astype(F32).reshape(N, H, -1)
    np.testing.assert_array_equal(got, powers)
    nan = np.isnan(bits.astype(F32))
    np.testing.assert_array_equal(device.get(q).view(np.uint8)[~nan], bits.view(np.uint8)[~nan])
    assert (stored[:20] == POISON).all() and (stored[20 + N :] == 0).all()


def test_mxfp8_in_rows_has_the_bits_of_groups_of_32(device: Device, rng: np.random.Generator) -> None:
    call, inputs = two(rng, BF16, D)
    given = [device.put(array) for array in inputs]
    scales, groups = (device.put(np.full((N, H, D // 32), POISON, np.uint8).view(E8M0)) for _ in range(2))
    q, _ = call(*given, out_format=ops.MxFp8(scales))
    want, _ = call(*given, out_format=ops.Fp8Groups(groups))
    np.testing.assert_array_equal(device.get(scales).view(np.uint8), device.get(groups).view(np.uint8))
    np.testing.assert_array_equal(device.get(q).view(np.uint8), device.get(want).view(np.uint8))


@pytest.mark.parametrize("n, heads, dim", [(5, 1, 80), (130, 3, 48), (128, 1, 64), (0, 1, 80)])
@pytest.mark.parametrize("is_bound", [False, True])
def test_vllm_45741_no_padding_of_tiles_is_left_unwritten(device: Device, n: int, heads: int, dim: int, is_bound: bool) -> None:
    """vLLM #45741, TransformerEngine #2719: a matrix product reads whole tiles, so all padding must be written. Without
    tokens there are no tiles, so nothing is written."""
    x, columns = device.put(np.ones((n, heads, dim), F32)), heads * dim // 16
    shape = (max(-(-n // 128), 1) * 128, -(-columns // 4) * 4)
    out = device.put(np.zeros((n, heads, dim // 2), np.uint8))
    for clears in (True, False):
        memory, others = (device.put(np.full(shape, 0xFF, np.uint8)) for _ in range(2))
        scales = ops.NvFp4(memory, 2.0, tiles="128x4", clear_padding=clears)
        if is_bound:
            bound = ops.quantize_groups.bind(x, scales, out=out)
            assert (device.get(memory) == 0xFF).all()
            bound()
        else:
            ops.quantize_groups(x, scales, out=out)
        stored = rows_of(device.get(memory), shape[1])
        padding = np.concatenate([stored[:n, columns:].ravel(), stored[n:].ravel()])
        assert (padding == (0 if clears and n else 0xFF)).all() and (stored[:n, :columns] != 0xFF).all()


def test_the_kernel_that_clears_padding(device: Device) -> None:
    memory = device.put(np.full((256, 8), 0xFF, np.uint8))
    clear_padding(memory, 3, 130, 200, 5)
    stored = rows_of(device.get(memory), 8)
    want = np.full((256, 8), 0xFF, np.uint8)
    want[3:130, 5:] = want[130:200] = 0
    np.testing.assert_array_equal(stored, want)


def test_new_memory_of_a_bound_call_is_cleared(device: Device) -> None:
    x, out, number = device.put(np.ones((5, 1, 80), F32)), device.put(np.zeros((5, 1, 40), np.uint8)), device.put(np.full(1, 2.0, F32))
    memories = [device.put(np.full((128, 8), 0xFF, np.uint8)) for _ in range(2)]
    bound = ops.quantize_groups.bind(x, ops.NvFp4(memories[0], number, tiles="128x4"), out=out)
    seen = memories[1].view(E4M3) if isinstance(memories[1], np.ndarray) else memories[1].view(sys.modules["torch"].float8_e4m3fn)
    bound.set_pointers((out, seen[:, :5].reshape(128, 1, 5), number, 0, x))
    bound()
    assert (device.get(memories[0]) == 0xFF).all() and not (device.get(memories[1]) == 0xFF).any()


def test_vllm_takes_uint8_outputs_with_both_scales(device: Device, rng: np.random.Generator) -> None:
    _, inputs = two(rng, BF16, D)
    given, number = [device.put(array) for array in inputs], device.put(np.full(1, GLOBAL, F32))
    want_scales = device.put(np.full((128, H * G), POISON, np.uint8))
    want, lse = ops.merge_attn_states(*given, context_rows=5, copy_past_context=True, out_format=ops.NvFp4(want_scales, number, tiles="128x4"))
    q, scales = device.put(np.full((N, H, D // 2), POISON, np.uint8)), device.put(np.full((128, H * G // 4), 0x5A5A5A5A, np.int32))
    q_lse = device.poisoned((H, N), F32)
    vllm.merge_attn_states(q, *given, q_lse, 5, number, scales)
    np.testing.assert_array_equal(device.get(q), device.get(want))
    np.testing.assert_array_equal(device.get(q_lse), device.get(lse))
    np.testing.assert_array_equal(device.get(scales).view(np.uint8), device.get(want_scales))


def made(shape: tuple[int, ...], dtype: Any = np.uint8) -> np.ndarray:
    return np.zeros(shape, dtype)


@pytest.mark.parametrize("where, message", [
    (ops.NvFp4(made((N, H, 16)), 1.0), r"NvFp4\.scales.*G = D / 16 of D = 128"),
    (ops.NvFp4(made((N, H, G), F32), 1.0), r"NvFp4\.scales.*float8_e4m3fn or uint8, got float32"),
    (ops.NvFp4(made((128, H * G), F32), 1.0, tiles="128x4"), r"NvFp4\.scales.*float8_e4m3fn, uint8 or int32 in tiles, got float32"),
    (ops.NvFp4(made((100, H * G)), 1.0, tiles="128x4"), r"NvFp4\.scales.*shape \[m, 48\], m a multiple of 128, in tiles \(heads: 6 x 128 elements, groups: 16 elements\)"),
    (ops.NvFp4(made((128, H * G)), 1.0, tiles="128x4", first_row=122), r"NvFp4\.first_row.*a row from 0 to 121, for 7 tokens in 128 rows, got 122"),
    (ops.NvFp4(made((128, H * G // 2), np.int32)[:, ::2], 1.0, tiles="128x4"), r"NvFp4\.scales.*expected stride 1 in the last dim for int32, got 2"),
    (ops.NvFp4(made((128, H * G)), 1.0, tiles="128x4", first_row=-1), r"NvFp4\.first_row.*a row from 0 to 121"),
    (ops.NvFp4(made((N, H, G)), made((2,), F32)), r'argument "NvFp4\.global_scale": expected size 1 .*got 2'),
    (ops.MxFp8(made((N, H, G), F32)), r"MxFp8\.scales.*float8_e8m0fnu or uint8, got float32"),
    (ops.MxFp8(made((N, H, G))), r"MxFp8\.scales.*G = D / 32 of D = 128"),
])  # fmt: skip
def test_scales_that_do_not_fit_are_errors(rng: np.random.Generator, where: Any, message: str) -> None:
    call, inputs = two(rng, BF16, D)
    with pytest.raises(ArgumentError, match=message):
        call(*inputs, out_format=where)


@pytest.mark.parametrize("fields, message", [
    (dict(tiles="32x4"), r"argument \"NvFp4\.tiles\": expected None, '128x4' or '8x4', got '32x4'"),
    (dict(first_row=5), r'argument "NvFp4\.first_row": expected 0 without tiles, got 5'),
    (dict(global_scale=None), r'argument "NvFp4\.global_scale": expected one f32 .*, got None'),
    (dict(quantize_from="bf16"), r"argument \"NvFp4\.quantize_from\": expected 'f32' or 'output', got 'bf16'"),
])  # fmt: skip
def test_fields_that_do_not_fit_are_errors_of_the_constructor(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        ops.NvFp4(**{"scales": made((N, H, G)), "global_scale": 1.0, **fields})


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_rows_of_one_word_in_tiles_have_any_stride(rng: np.random.Generator, library: str) -> None:
    a, b = (rng.standard_normal((N, 1, 64)).astype(F32) for _ in range(2))
    lse, words, want = np.zeros((1, N), F32), made((128, 4), np.int32), made((128, 1), np.int32)
    words.view(np.uint8)[...] = POISON
    inputs = [a, lse, b, lse]
    given, scales = inputs, words
    if library == "torch":
        torch = pytest.importorskip("torch")
        given, scales = [torch.from_numpy(array) for array in inputs], torch.from_numpy(words)
    ops.merge_attn_states(*given, out_format=ops.NvFp4(scales[:, ::4], GLOBAL, tiles="128x4"))
    ops.merge_attn_states(*inputs, out_format=ops.NvFp4(want, GLOBAL, tiles="128x4"))
    got = rows_of(words.view(np.uint8), 16)
    np.testing.assert_array_equal(got[:N, :4], rows_of(want.view(np.uint8), 4)[:N])
    assert (got[:, 4:] == POISON).all() and (got[N:, :4] == 0).all()


@pytest.mark.parametrize("target", ["sm_90", "sm_100"])
def test_the_code_for_dense_calls(target: str) -> None:
    """The code stores a pack of eight elements as one word (on sm_100, a pack of sixteen as two words), and each scale
    as a byte. It has no divisions, only reciprocals of the scales and of the global scale."""
    kernel = merge.merge_attn_states(Scaling(is_fp4=True, tile_rows=128))
    bindings = {"H": 128, "G": 8, "K": 16, "T": "bf16", "S": "f8e4m3fn", "out_lse": "present", "global_scale": "present"}
    ptx = kernel.ptx(target, **bindings).partition("_dense(")[2].partition(".entry")[0]
    stores = [line.split()[0] for line in ptx.splitlines() if "st.global" in line]
    packs, word = (ptx.count("ld.global.v4.b32") // 2, "b32") if target == "sm_90" else (ptx.count("ld.global.v8.b32") // 2, "v2.b32")
    assert packs and sorted(stores) == sorted([f"st.global.{word}", "st.global.b8"] * packs + ["st.global.b32"])
    assert ptx.count("rcp.rn.f32") == packs + 1 and "div" not in ptx
