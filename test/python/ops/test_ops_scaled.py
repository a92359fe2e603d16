"""Tests that merges into formats with a scale per group have the bits of a merge followed by a quantiser, in every
layout of scales."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest
from devices import Device
from numerics import BF16, E4M3, E8M0, F16, F32

from mlafix import ArgumentError, UnitError, ops
from mlafix.compat import vllm
from mlafix.ops._outputs import outputs

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")
from mlafix.kernels import merge  # noqa: E402
from mlafix.kernels.scaling import Scaling  # noqa: E402

N, H, D = 7, 6, 256
SHORT = 64  # the row length of tests for which short rows suffice; code for it compiles in a third of the time
NONE = -np.inf


def quantised(rows: np.ndarray, groups: int, powers: bool) -> tuple[np.ndarray, np.ndarray]:
    """Quantises rows like the engines, in f32. Returns the quantised rows and the scales."""
    each = rows.astype(F32).reshape(*rows.shape[:-1], groups, rows.shape[-1] // groups)
    with np.errstate(all="ignore"):
        scales = np.maximum(np.abs(each).max(-1), F32.type(1e-10)) / F32.type(448)
        if powers:
            fraction, exponent = np.frexp(np.maximum(scales, F32.type(1e-10)))
            scales = np.where(np.isnan(scales), scales, np.ldexp(F32.type(1), exponent - (fraction == 0.5))).astype(F32)
        q = np.clip(each / scales[..., None], -448, 448).astype(E4M3)
    return q.reshape(rows.shape), scales


def states(rng: np.random.Generator, dtype: np.dtype, lead: tuple[int, ...], lse: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    size = 10.0 ** rng.integers(-6, 4, (*lead[:-1], 1))
    return (rng.standard_normal(lead) * size).astype(dtype), rng.standard_normal(lse).astype(F32)


def two(rng: np.random.Generator, dtype: np.dtype, dim: int = D) -> tuple[Callable[..., Any], list[np.ndarray]]:
    """Returns a merge of two states and its inputs. Some tokens have only one side or none, and payloads without weight
    are NaN."""
    (a, a_lse), (b, b_lse) = (states(rng, dtype, (N, H, dim), (H, N)) for _ in range(2))
    a_lse[:, 1], b_lse[:, 2], a_lse[:, 3], b_lse[:, 3] = NONE, np.inf, NONE, NONE
    a[1], b[2], a[3], b[3] = np.nan, np.nan, np.nan, np.nan
    a[4, 2, 5] = np.nan  # this NaN shows in the result, since both sides of its row have weight
    return (lambda a, s, b, t, **given: ops.merge_attn_states(a, s, b, t, context_rows=6, **given)), [a, a_lse, b, b_lse]


def dense(rng: np.random.Generator, dtype: np.dtype, dim: int = D, count: int = 11) -> tuple[Callable[..., Any], list[np.ndarray]]:
    v, s = states(rng, dtype, (N, count, H, dim), (N, count, H))
    s[2], s[3, : count - 1] = NONE, NONE
    v[2] = np.nan
    return ops.merge_states, [v, s]


def few(rng: np.random.Generator, dtype: np.dtype, dim: int = D) -> tuple[Callable[..., Any], list[np.ndarray]]:
    return dense(rng, dtype, dim, 4)


def ragged(rng: np.random.Generator, dtype: np.dtype, dim: int = D) -> tuple[Callable[..., Any], list[np.ndarray]]:
    v, s = states(rng, dtype, (30, H, dim), (30, H))
    # one segment is empty, two are malformed
    return ops.merge_states_ragged, [v, s, np.array([0, 3, 3, 12, 13, 20, 40, 30], np.int32)]


def listed(rng: np.random.Generator, dtype: np.dtype, dim: int = D) -> tuple[Callable[..., Any], list[np.ndarray]]:
    v, s = states(rng, dtype, (3, N, H, dim), (3, N, H))
    s[:, 2] = NONE
    return (lambda v, s, **given: ops.merge_states_list(list(v), list(s), **given)), [v, s]


def split(rng: np.random.Generator, dtype: np.dtype, dim: int = D) -> tuple[Callable[..., Any], list[np.ndarray]]:
    v, s = states(rng, dtype, (5, N, 1, H, dim), (5, N, 1, H))
    s[:, 2] = NONE
    return ops.combine_split_kv, [v, s]


def mapped(rng: np.random.Generator, dtype: np.dtype, dim: int = D) -> tuple[Callable[..., Any], list[np.ndarray]]:
    """Returns a merge through maps and its inputs. The groups write all rows, in another order. One group has no parts,
    and one has part numbers out of range."""
    v, s = states(rng, dtype, (20, H, dim), (20, H))
    v[4], s[4] = np.nan, NONE
    indptr, rows = np.array([0, 3, 3, 9, 12, 13, 19, 22], np.int32), np.array([4, 3, 0, 6, 1, 5, 2], np.int32)
    parts = np.concatenate([rng.permutation(20), [-1, 40]]).astype(np.int32)

    def call(v: Any, s: Any, *maps: Any, out: Any = None, out_lse: Any = None, **given: Any) -> tuple[Any, Any]:
        out, out_lse = outputs(v, "v", out, out_lse, True, given.get("out_format"), shape=(N, H, dim))
        ops.merge_states_mapped(out, v, s, *maps, out_lse=out_lse, **given)
        return out, out_lse

    return call, [v, s, indptr, parts, rows]


CALLS = {"two": two, "dense": dense, "few": few, "ragged": ragged, "list": listed, "split": split, "mapped": mapped}


def layouts(groups: int) -> dict[str, tuple[np.ndarray, bool]]:
    """Returns, for each layout of scales, poisoned memory and whether scales are powers of two. Some layouts have
    padding."""
    made = {
        "rows": (np.full((N, H, groups), np.nan, F32), False),
        "flat": (np.full((N, H * groups), np.nan, F32), False),
        "columns": (np.full((H * groups, N), np.nan, F32).T, False),
        "tma": (np.full((H * groups, -(-N // 4) * 4), np.nan, F32)[:, :N].T, False),
        "bytes": (np.full((H * groups, 8), 255, np.uint8).view(E8M0)[:, :N].T, True),
    }
    if groups == D // 128:
        made["words"] = (np.full((-(-H * groups // 4), 8), -1, np.int32)[:, :N].T, True)
    return made


def scales_in(stored: np.ndarray, groups: int) -> np.ndarray:
    """Returns stored scales as [N, H, G] f32. Asserts that padding bytes of words are 0."""
    if stored.dtype == np.int32:
        each = np.ascontiguousarray(stored).view(np.uint8)
        assert (each[:, H * groups :] == 0).all()
        stored = each[:, : H * groups].view(E8M0)
    return np.ascontiguousarray(stored).astype(F32).reshape(N, H, groups)


def check(q: np.ndarray, scales: np.ndarray, want: np.ndarray, groups: int, powers: bool) -> None:
    bits, numbers = quantised(want, groups, powers)
    np.testing.assert_array_equal(scales, numbers)
    nan = np.isnan(bits.astype(F32))
    np.testing.assert_array_equal(np.isnan(q.astype(F32)), nan)
    np.testing.assert_array_equal(q.view(np.uint8)[~nan], bits.view(np.uint8)[~nan])


@pytest.mark.parametrize("dtype, groups, source", [
    (BF16, 2, "output"), (BF16, 2, "f32"), (BF16, 4, "output"), (F16, 2, "output"), (F32, 8, "f32"),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("name", CALLS)
def test_vllm_40930_merges_into_groups_of_fp8_have_the_bits_of_the_unfused_sequence(
    device: Device, rng: np.random.Generator, name: str, dtype: np.dtype, groups: int, source: Any
) -> None:
    """vLLM #40930 fuses the merge of two states with per-group fp8. Scales lie in rows, in columns, or padded for TMA,
    or are powers of two. The first case of dtype, groups and source runs in all layouts of scales; the other cases run
    in some of them."""
    call, inputs = CALLS[name](rng, dtype)
    is_first, turn = (dtype, groups, source) == (BF16, 2, "output"), list(CALLS).index(name)
    given = [device.put(array) for array in inputs]
    wide = [device.put(array.astype(F32)) if array.dtype == dtype else tensor for array, tensor in zip(inputs, given)]
    merged, lse = call(*(given if source == "output" else wide))
    for i, (layout, (poisoned, powers)) in enumerate(layouts(groups).items()):
        if layout == "words" and name == "split" or not is_first and (i + turn) % 3:
            continue
        scales = device.put(poisoned)
        shaped = scales[:, None] if name == "split" else scales
        q, q_lse = call(*given, out_format=ops.Fp8Groups(shaped, quantize_from=source))
        np.testing.assert_array_equal(device.get(q_lse), device.get(lse))
        check(device.get(q).reshape(N, H, D), scales_in(device.get(scales), groups), device.get(merged).reshape(N, H, D), groups, powers)


def check_joined(q: np.ndarray, scales: np.ndarray, want: np.ndarray, joined: int, powers: bool) -> None:
    heads = want.shape[-2]
    whole = (N, heads // joined, joined * want.shape[-1])
    check(q.reshape(whole), scales.astype(F32).reshape(N, heads // joined, 1), want.reshape(whole), 1, powers)


@pytest.mark.parametrize("joined", [2, 3])
@pytest.mark.parametrize("name", CALLS)
def test_groups_of_several_heads_have_the_bits_of_the_unfused_sequence(device: Device, rng: np.random.Generator, name: str, joined: int) -> None:
    """Two or three heads share a scale. The layouts of scales are rows, padded columns, and bytes with powers of two.
    Groups of two heads are tested in all of them, and groups of three in one."""
    call, inputs = CALLS[name](rng, BF16, SHORT)
    given = [device.put(array) for array in inputs]
    merged, lse = call(*given)
    groups = H // joined
    places = [np.full((N, groups), np.nan, F32), np.full((groups, 8), np.nan, F32)[:, :N].T, np.full((N, groups), 255, np.uint8).view(E8M0)]
    for poisoned in places if joined == 2 else [places[list(CALLS).index(name) % 3]]:
        scales = device.put(poisoned)
        q, q_lse = call(*given, out_format=ops.Fp8Groups(scales[:, None] if name == "split" else scales, quantize_from="output"))
        np.testing.assert_array_equal(device.get(q_lse), device.get(lse))
        check_joined(device.get(q), device.get(scales), device.get(merged).reshape(N, H, SHORT), joined, poisoned.dtype == E8M0)


def test_groups_of_128_over_two_heads_of_64(device: Device, rng: np.random.Generator) -> None:
    """A scale covers 128 elements of two heads of 64. Scales are arbitrary, or rounded up to powers of two."""
    (a, a_lse), (b, b_lse) = (states(rng, BF16, (N, 16, 64), (16, N)) for _ in range(2))
    a_lse[:, 1], b_lse[:, 1], a[1], b[1] = NONE, NONE, np.nan, np.nan
    given = [device.put(array) for array in (a, a_lse, b, b_lse)]
    merged, _ = ops.merge_attn_states(*[device.put(array.astype(F32)) for array in (a, a_lse, b, b_lse)])
    for rounds in (False, True):
        scales = device.poisoned((N, 8), F32)
        q, _ = ops.merge_attn_states(*given, out_format=ops.Fp8Groups(scales, power_of_two=rounds))
        check_joined(device.get(q), device.get(scales), device.get(merged), 2, rounds)


@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_one_scale_that_is_given_has_the_bits_of_the_unfused_sequence(device: Device, rng: np.random.Generator, name: str, dtype: np.dtype) -> None:
    """With one scale for all rows, the bits equal a merge into f32, a product with the reciprocal of the scale, and a
    conversion to fp8."""
    call, inputs = CALLS[name](rng, dtype, SHORT)
    given = [device.put(array) for array in inputs]
    merged, lse = call(*(device.put(array.astype(F32)) if array.dtype == dtype else tensor for array, tensor in zip(inputs, given)))
    for scale in (0.0137, 1.7):
        factor = F32.type(1) / F32.type(scale)
        want = device.get(merged) * factor
        want = np.where(np.isnan(want), want, np.clip(want, -448, 448)).astype(F32).astype(E4M3)
        scales = [scale] if scale > 1 else [device.put(np.full(1, scale, F32)).reshape(shape) for shape in ((), (1,), (1, 1))]
        for each in scales:
            out, out_lse = device.poisoned(want.shape, E4M3), device.poisoned(tuple(lse.shape), F32)
            for q, q_lse in (call(*given, out_format=ops.Fp8(each), out=out, out_lse=out_lse), call(*given, out_format=ops.Fp8(each))):
                got, nan = device.get(q), np.isnan(want.astype(F32))
                assert got.dtype == E4M3
                np.testing.assert_array_equal(np.isnan(got.astype(F32)), nan)
                np.testing.assert_array_equal(got.view(np.uint8)[~nan], want.view(np.uint8)[~nan])
                np.testing.assert_array_equal(device.get(q_lse), device.get(lse))


@pytest.mark.parametrize("name", CALLS)
def test_wrong_calls_with_one_scale(rng: np.random.Generator, name: str) -> None:
    call, inputs = CALLS[name](rng, BF16)
    with pytest.raises(ArgumentError, match='argument "out_format": expected an instance of Fp8, Fp8Groups, MxFp8, MxFp4 or NvFp4, got ndarray'):
        call(*inputs, out_format=np.empty((N, H, 2), F32))
    with pytest.raises(ArgumentError, match=r'argument "Fp8\.scale": expected .*size 1.*got 2'):
        call(*inputs, out_format=ops.Fp8(np.ones(2, F32)))
    if name == "split":
        with pytest.raises(ArgumentError, match='argument "out_dtype": expected f8e4m3fn or None with Fp8, got f16'):
            call(*inputs, out_format=ops.Fp8(1.0), out_dtype="f16")
    out, _ = call(*inputs)
    with pytest.raises(ArgumentError, match='argument "out": expected .*f8e4m3fn.*got bf16'):
        call(*inputs, out_format=ops.Fp8(1.0), out=out)


def test_rows_of_empty_states_are_zeros_with_the_least_scale(device: Device, rng: np.random.Generator) -> None:
    call, inputs = two(rng, BF16)
    scales = device.put(np.full((N, H, 2), np.nan, F32))
    q, _ = call(*(device.put(array) for array in inputs), out_format=ops.Fp8Groups(scales))
    assert (device.get(q)[3].view(np.uint8) == 0).all()
    assert (device.get(scales)[3] == F32.type(1e-10) / F32.type(448)).all()


def test_scales_are_rounded_up_to_powers_where_asked(device: Device, rng: np.random.Generator) -> None:
    call, inputs = two(rng, BF16)
    given, scales = [device.put(array) for array in inputs], device.put(np.full((N, H, 2), np.nan, F32))
    merged, _ = call(*given)
    q, _ = call(*given, out_format=ops.Fp8Groups(scales, power_of_two=True, quantize_from="output"))
    check(device.get(q), device.get(scales), device.get(merged), 2, powers=True)


def test_padding_between_columns_is_not_touched(device: Device, rng: np.random.Generator) -> None:
    """Padding between columns of scales is not written. TMA needs such padding, since columns must begin at multiples
    of 16 bytes."""
    call, inputs = two(rng, BF16)
    memory = device.put(np.full((H * 2, 8), 3.5, F32))
    call(*(device.put(array) for array in inputs), out_format=ops.Fp8Groups(memory[:, :N].T))
    assert (device.get(memory)[:, N:] == 3.5).all() and not (device.get(memory)[:, :N] == 3.5).any()


def test_other_layouts_and_bases_of_the_lse(device: Device, rng: np.random.Generator) -> None:
    call, inputs = two(rng, BF16)
    turned = [device.put(array if array.ndim == 3 else np.ascontiguousarray(array.T)) for array in inputs]
    scales = device.put(np.full((N, H, 2), np.nan, F32))
    merged, lse = call(*turned, lse_layout="nh", base="2")
    q, q_lse = call(*turned, out_format=ops.Fp8Groups(scales, quantize_from="output"), lse_layout="nh", base="2")
    np.testing.assert_array_equal(device.get(q_lse), device.get(lse))
    check(device.get(q), device.get(scales), device.get(merged), 2, powers=False)


def test_vllm_copies_past_the_context_and_scales(device: Device, rng: np.random.Generator) -> None:
    _, inputs = two(rng, F32)
    inputs[3][:, 6] = np.inf  # row 6 is past the context; its payload is copied although its lse is +inf
    given, merged = [device.put(array) for array in inputs], device.put(np.zeros((N, H, D), F32))
    lse, q_lse = (device.put(np.zeros((H, N), F32)) for _ in range(2))
    vllm.merge_attn_states(merged, *given, lse, 6)
    q, scales = device.poisoned((N, H, D), E4M3), device.put(np.full((H * 2, N), np.nan, F32).T)
    vllm.merge_attn_states(q, *given, q_lse, 6, output_block_scale=scales)
    np.testing.assert_array_equal(device.get(q_lse), device.get(lse))
    check(device.get(q), scales_in(device.get(scales), 2), device.get(merged), 2, powers=False)


@pytest.mark.parametrize("scales, message", [
    (np.zeros((N, H, 3), F32), r"Fp8Groups\.scales.*G a divisor of 256, or .*groups of up to 8 whole heads, got"),
    (np.zeros((N, H - 1), F32), r"Fp8Groups\.scales.*or \[7, P\], P groups of up to 8 whole heads, got \(7, 5\)"),
    (np.zeros((N, 1, H // 2), F32), r"Fp8Groups\.scales.*shape"),
    (np.zeros((N + 1, H, 2), F32), r"Fp8Groups\.scales.*shape"),
    (np.zeros((N, 13), F32), r"Fp8Groups\.scales.*shape"),
    (np.zeros((N, H, 2), np.float64), r"Fp8Groups\.scales.*float32, float8_e8m0fnu or int32, got float64"),
    (np.zeros((N, 4), np.int32), r"Fp8Groups\.scales.*a word for each 4 groups"),
])  # fmt: skip
def test_scales_that_do_not_fit_are_errors(rng: np.random.Generator, scales: np.ndarray, message: str) -> None:
    call, inputs = two(rng, BF16)
    with pytest.raises(ArgumentError, match=message):
        call(*inputs, out_format=ops.Fp8Groups(scales))


def test_other_wrong_calls(rng: np.random.Generator) -> None:
    call, inputs = two(rng, BF16)
    scales = np.zeros((N, H, 2), F32)
    with pytest.raises(ArgumentError, match=r"argument \"Fp8Groups\.quantize_from\": expected 'f32' or 'output', got 'bf16'"):
        ops.Fp8Groups(scales, quantize_from="bf16")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r'argument "Fp8Groups\.power_of_two": expected False or True, got 2'):
        ops.Fp8Groups(scales, power_of_two=2)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r'argument "Fp8\.scale": expected one f32 .*, got None'):
        ops.Fp8(None)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="lse_layout"):
        call(*inputs, out_format=ops.Fp8Groups(scales), lse_layout="xy")


def test_binding_a_call_compiles_ahead_for_any_number_of_tokens(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch,
                                                                tmp_path: Path) -> None:
    """Binding a call with arrays of one token compiles the code for any number of tokens. `mlafix.warmup` compiles the
    same code (test_serving.py)."""
    def arrays(n: int) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        rows, lse = rng.standard_normal((n, 3, 96)).astype(BF16), np.zeros((3, n), F32)
        return [rows, lse, rows, lse], np.full((n, 3, 96), np.nan).astype(E4M3), np.full((n, 3, 3), np.nan, F32)

    monkeypatch.setenv("MLAFIX_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("MLAFIX_STRICT", "1")
    inputs, out, scales = arrays(1)
    with pytest.raises(UnitError, match="MLAFIX_STRICT forbids compiling it"):
        ops.merge_attn_states.bind(*inputs, out=out, return_lse=False, out_format=ops.Fp8Groups(scales))
    monkeypatch.delenv("MLAFIX_STRICT")
    ops.merge_attn_states.bind(*inputs, out=out, return_lse=False, out_format=ops.Fp8Groups(scales))
    assert np.isnan(scales).all()
    monkeypatch.setenv("MLAFIX_STRICT", "1")
    inputs, out, scales = arrays(N)
    ops.merge_attn_states(*inputs, out=out, return_lse=False, out_format=ops.Fp8Groups(scales))
    check(out, scales, inputs[0].astype(F32), 3, powers=False)


@pytest.mark.parametrize("dim, words", [(128, False), (512, False), (512, True)])
def test_the_code_for_dense_calls_has_wide_accesses_and_no_barriers(dim: int, words: bool) -> None:
    """Loads have 16 bytes. A division by a scale becomes a product with two corrections, and numbers out of range are
    really divided. If scales are powers of two, the division is only a product."""
    kernel = merge.merge_attn_states(Scaling(is_power=words))
    bindings = {"H": 128, "G": dim // 128, "K": 128, "P": 128, "Q": 1, "T": "bf16", "S": "f8e8m0" if words else "f32", "out_lse": "present"}
    ptx = kernel.ptx("sm_90", **bindings).partition("_dense(")[2].partition(".entry")[0]
    packs, groups = 2, min(dim // 128, 2)  # the packs and groups of each lane
    assert ptx.count("ld.global.v4.b32") == 2 * packs and ptx.count("bar.warp.sync") == 0
    # The merge itself has one reciprocal.
    divisors = 0 if words else groups
    assert ptx.count("rcp.approx.ftz.f32") == 1 + divisors and "rcp.rn" not in ptx and ptx.count("div.rn.f32") == (8 * packs if divisors else 0)
